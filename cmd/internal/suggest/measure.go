package suggest

import (
	"context"
	"fmt"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/config"
)

// measure replays the log with each proposed rule alone, its limit in force, to count the
// requests that the limit refuses. It then replays the log with all of them. A single replay with
// all rules would not suffice: a request that two limits refuse would be counted for only one.
func (s *search) measure(ctx context.Context) error {
	var all strings.Builder
	for _, p := range s.params {
		rule := p.rules(p.Threshold) + "    limit: " + p.Limit + "\n"
		all.WriteString(rule)
		var err error
		p.RefusedValues = 0
		if p.Refused, err = s.refused(ctx, rule, func(k replay.KeyReport) {
			if k.Limited > 0 {
				p.RefusedValues++
			}
		}); err != nil {
			return err
		}
	}
	var err error
	switch len(s.params) {
	case 0:
		return nil
	case 1:
		s.result.Refused = s.params[0].Refused
	default:
		s.result.Refused, err = s.refused(ctx, all.String(), nil)
	}
	var b strings.Builder
	b.WriteString("rules:\n")
	for _, p := range s.params {
		b.WriteString(p.proposal())
	}
	s.result.Rules = b.String()
	return err
}

// refused returns how many requests the rules refuse when the log is replayed.
func (s *search) refused(ctx context.Context, rules string, onKey func(replay.KeyReport)) (int64, error) {
	file, err := config.Parse("suggestion", []byte("rules:\n"+rules))
	if err != nil {
		return 0, fmt.Errorf("suggest: %w", err)
	}
	summary, err := s.replay(ctx, replay.Config{Rules: file.Rules, Log: s.Log, OnKey: onKey})
	return summary.Limited, err
}
