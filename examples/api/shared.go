package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

// shared is what limits need that hold all instances together: with scope: exact Redis
// decides, with scope: share the number of instances does. Rules that have neither need
// nothing of it, and nothing is written to Redis then.
type shared struct {
	needed    bool
	store     *redislimiter.Store
	semaphore *redislimiter.Semaphore
	members   *redislimiter.Members
	guard     *middleware.Guard // gets the number of instances
}

func newShared(client redis.UniversalClient, rules *hotparam.Rules) (s *shared, err error) {
	s = &shared{needed: isNeeded(rules)}
	name, log := collector.DefaultInstance(), slog.Default()
	if s.store, err = redislimiter.New(client, redislimiter.Config{Namespace: rules.Namespace}); err != nil {
		return nil, err
	}
	if s.semaphore, err = redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: rules.Namespace, Name: name, Logger: log}); err != nil {
		return nil, err
	}
	s.members, err = redislimiter.NewMembers(client, redislimiter.MembersConfig{
		Namespace: rules.Namespace, Name: name, Logger: log, OnChange: func(n int) { s.guard.SetInstances(n) },
	})
	return s, err
}

func isNeeded(rules *hotparam.Rules) bool { return slices.ContainsFunc(rules.Rules, isShared) }

func isShared(r hotparam.Rule) bool {
	limits := []*hotparam.Limit{r.Limit}
	for i := range r.Except {
		limits = append(limits, r.Except[i].Limit)
	}
	return slices.ContainsFunc(limits, func(l *hotparam.Limit) bool { return l != nil && l.Scope != "" && l.Scope != hotparam.ScopeInstance })
}

func (s *shared) options() []middleware.Option {
	return []middleware.Option{
		middleware.WithBackend(s.store), middleware.WithSemaphore(s.semaphore), middleware.WithLog(slog.Default()),
	}
}

// run renews permits, and counts the instances that live.
func (s *shared) run(ctx context.Context, guard *middleware.Guard) error {
	if !s.needed {
		return nil
	}
	s.guard = guard
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.semaphore.Run(ctx) })
	group.Go(func() error { return s.members.Run(ctx) })
	return group.Wait()
}
