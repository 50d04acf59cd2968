package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Facts are what is in force beside the rules: the hot keys, and operators' controls.
type Facts struct {
	Hot      []rules.Hot
	Controls []rules.Control
	// Unknown is why hot keys are not known, or empty, and NoControls why controls are not.
	Unknown, NoControls string
}

// readTimeout bounds the time to read facts.
const readTimeout = 2 * time.Second

// Read reads what is in force in a namespace. If it cannot be read, Unknown says why.
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

func (f *Facts) known() bool { return f.Unknown == "" }

func (f *Facts) config(rules *rules.Rules, fit func([]byte) []byte) middleware.ExplainConfig {
	return middleware.ExplainConfig{Rules: rules, Hot: f.Hot, Controls: f.Controls, Fit: fit}
}

// isHot reports whether the key is among the hot keys: of a pinned key the guard knows only
// that it is to be limited as these.
func (f *Facts) isHot(key rules.Key) bool {
	return slices.ContainsFunc(f.Hot, func(h rules.Hot) bool { return h.Key == key })
}

// control returns what an operator has said about the key, or nil.
func (f *Facts) control(key rules.Key) *Control {
	at := slices.IndexFunc(f.Controls, func(c rules.Control) bool { return c.Key == key })
	if at < 0 {
		return nil
	}
	c := &f.Controls[at]
	return &Control{Action: string(c.Action), Until: c.Until.UTC(), Why: c.Why, By: c.By, Claimed: c.Claimed}
}
