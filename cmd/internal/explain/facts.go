package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Facts are the state in addition to the rules: the hot keys and the operators' controls.
type Facts struct {
	Hot      []published.Hot
	Controls []published.Control
	// Unknown is the reason why hot keys are unknown, or empty. NoControls is the same for
	// controls.
	Unknown, NoControls string
}

// readTimeout bounds the time to read facts.
const readTimeout = 2 * time.Second

// Read reads the facts of a namespace. If the hot keys cannot be read, Unknown has the reason.
func Read(ctx context.Context, client redis.UniversalClient, namespace string) Facts {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	hot, err := hotkeys.List(ctx, client, namespace)
	if err != nil {
		return Facts{Unknown: "Redis cannot be asked: " + strings.TrimPrefix(err.Error(), "list hot keys: ")}
	}
	facts := Facts{Hot: hot}
	if facts.Controls, err = hotkeys.ListControls(ctx, client, namespace); err != nil {
		facts.NoControls = strings.TrimPrefix(err.Error(), "list controls: ")
	}
	return facts
}

func (f *Facts) isKnown() bool { return f.Unknown == "" }

func (f *Facts) config(rules *rules.Rules, fit func([]byte) []byte) middleware.ExplainConfig {
	return middleware.ExplainConfig{Rules: rules, Hot: f.Hot, Controls: f.Controls, Fit: fit}
}

// isHot reports whether the key is among the hot keys. The guard's explanation cannot answer this,
// since a guard treats a pinned key like a hot one.
func (f *Facts) isHot(key rules.Key) bool {
	return slices.ContainsFunc(f.Hot, func(h published.Hot) bool { return h.Key == key })
}

// control returns the control of the key, or nil if there is none.
func (f *Facts) control(key rules.Key) *KeyControl {
	i := slices.IndexFunc(f.Controls, func(c published.Control) bool { return c.Key == key })
	if i < 0 {
		return nil
	}
	c := &f.Controls[i]
	return &KeyControl{Action: string(c.Action), Until: c.Until.UTC(), Why: c.Why, By: c.By, Claimed: c.Claimed}
}

// RulesOf returns ruleset with the settings of a file that affect the form of keys.
func RulesOf(file *config.File, ruleset *rules.Rules) Rules {
	r := Rules{Rules: ruleset, LimitWords: hotwords.Limit}
	encoding, err := wire.ParseEncoding(file.StatsD.WithDefaults(file.Aggregator).Encoding)
	if source := file.Aggregator.Source; err == nil && source != config.SourceKafka && source != config.SourceNone {
		r.Fit = encoding.Fit
	}
	return r
}
