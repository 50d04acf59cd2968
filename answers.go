package hotparam

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/middleware/sharing"
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

// closeTimeout bounds the end of the answers, and a Close whose context has no deadline.
const closeTimeout = 5 * time.Second

func newAnswers(client redis.UniversalClient, namespace string, log *slog.Logger) (a *answers, err error) {
	a = &answers{Answers: sharing.New(log)}
	a.invalidator, err = hotkeys.NewInvalidator(client, hotkeys.WatcherConfig{Namespace: namespace, Logger: log}, a)
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

// follow begins to send and to follow invalidations, once a rule has on_hot. The caller holds
// Hotparam.mu.
func (a *answers) follow(run func(func(context.Context) error), ruleset *rules.Rules) {
	has := func(r rules.Rule) bool { return r.OnHot != nil }
	if !a.follows && slices.ContainsFunc(ruleset.Rules, has) {
		a.follows = true
		run(a.invalidator.Run)
	}
}

// invalidateKey drops the answers to all requests of a hot key.
func (a *answers) invalidateKey(key rules.Key) { a.invalidator.Tag(onhot.TagID(key.String())) }
