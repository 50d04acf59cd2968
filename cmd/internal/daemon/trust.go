package daemon

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/decode"
)

var trustModes = map[string]decode.TrustMode{
	config.TrustAll: decode.TrustAll, config.TrustListed: decode.TrustListed, config.TrustSigned: decode.TrustSigned,
}

// trust returns the rules for accepting counts. It reads the keys.
func (s *settings) trust() (*decode.Trust, error) {
	a := s.File.Aggregator
	keys, err := a.Keys()
	if err != nil {
		return nil, configError(err)
	}
	bound := func(n int) int { return max(n, 0) } // config.NoCap is negative: no limit
	return &decode.Trust{
		Mode: trustModes[a.Trust], Senders: a.Senders, Keys: keys, Log: s.Log,
		Caps: decode.Caps{
			Counts: max(a.Caps.Counts, 0), Keys: bound(a.Caps.Keys), Names: bound(a.Caps.Names), NewNames: bound(a.Caps.NewNames),
		},
	}, nil
}

// refusedFor is the time for which a refusal is reported.
const refusedFor = time.Minute

// refusedWords describes the last refusal, or returns "" if there was none within refusedFor.
func refusedWords(stats *decode.Stats) string {
	if last := stats.LastRefused; !last.When.IsZero() && time.Since(last.When) < refusedFor {
		return fmt.Sprintf("; what some senders send is dropped, lately as %s (hotparam_*_refused_*_total; docs/SECURITY.md)", last.Why)
	}
	return ""
}
