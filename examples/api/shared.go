package main

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

// shared is what limits need that hold all instances together: with scope: exact Redis
// decides, with scope: share the number of instances does. A program whose rules have
// neither needs none of it.
type shared struct {
	store     *redislimiter.Store
	semaphore *redislimiter.Semaphore
	members   *redislimiter.Members
	guard     *middleware.Guard // that is told how many instances there are
}

func newShared(client redis.UniversalClient, namespace string) (s *shared, err error) {
	s = &shared{}
	name, log := collector.DefaultInstance(), slog.Default()
	if s.store, err = redislimiter.New(client, redislimiter.Config{Namespace: namespace}); err != nil {
		return nil, err
	}
	if s.semaphore, err = redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: namespace, Name: name, Logger: log}); err != nil {
		return nil, err
	}
	s.members, err = redislimiter.NewMembers(client, redislimiter.MembersConfig{
		Namespace: namespace, Name: name, Logger: log,
		OnChange: func(n int) { s.guard.SetInstances(n) },
	})
	return s, err
}

func (s *shared) options() []middleware.Option {
	return []middleware.Option{
		middleware.WithBackend(s.store), middleware.WithSemaphore(s.semaphore), middleware.WithLog(slog.Default()),
	}
}
