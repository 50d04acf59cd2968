package hotparam

import (
	"context"
	"slices"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/internal/sharing"
	"github.com/hotparam/hotparam/rules"
)

// answers are the parts that answer requests of hot keys together.
type answers struct {
	*sharing.Answers
	invalidator *hotkeys.Invalidator // invalidates answers here, and at the other instances
	follows     bool                 // whether invalidator runs; guarded by Hotparam.mu
}

// OnHotStats are the statistics of a rule with on_hot.
type OnHotStats = sharing.Stats

// newAnswers returns the answers of h, which has its client.
func (h *Hotparam) newAnswers(namespace string) (a *answers, err error) {
	a = &answers{Answers: sharing.New(h.log)}
	a.invalidator, err = hotkeys.NewInvalidator(h.client, hotkeys.WatcherConfig{Namespace: namespace, Logger: h.log}, a)
	if err == nil {
		a.OnInvalidate(a.invalidator.Target)
	}
	return a, err
}

// run waits for the end of ctx, and then for the handlers that run for several requests, for a
// bounded time.
func (a *answers) run(ctx context.Context) (err error) {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return a.Close(ctx)
}

// followInvalidations begins to send and to follow invalidations, once a rule has on_hot. The caller
// holds mu.
func (h *Hotparam) followInvalidations(ruleset *rules.Rules) {
	has := func(r rules.Rule) bool { return r.OnHot != nil }
	if !h.closed && !h.answers.follows && slices.ContainsFunc(ruleset.Rules, has) {
		h.answers.follows = true
		h.run(h.answers.invalidator.Run)
	}
}

// InvalidateTarget drops the answers to a target at all instances, within a second. host is as in
// [http.Request].Host, path is escaped, and query is raw. A request that is neither GET, HEAD nor
// OPTIONS and does not fail does the same.
func (h *Hotparam) InvalidateTarget(host, path, query string) {
	h.answers.Invalidate(host, path, query)
}

// InvalidateKey drops the answers to all requests of a hot key at all instances, within a second.
func (h *Hotparam) InvalidateKey(key rules.Key) {
	h.answers.invalidator.Tag(onhot.TagID(key.String()))
}
