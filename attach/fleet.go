package attach

import (
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

// fleet is what limits need that hold all instances together: with scope: exact Redis
// decides, with scope: share the number of live instances does. Rules that have neither
// need none of it, and nothing is written to Redis then.
type fleet struct {
	store     *redislimiter.Store
	semaphore *redislimiter.Semaphore
	members   *redislimiter.Members
	joined    bool // semaphore and members run; guarded by Hotparam.mu
}

// newFleet returns a fleet that calls onCount with each new number of instances.
func newFleet(client redis.UniversalClient, namespace string, o *options, onCount func(n int)) (f *fleet, err error) {
	f = new(fleet)
	if f.store, err = redislimiter.New(client, redislimiter.Config{Namespace: namespace}); err != nil {
		return nil, err
	}
	f.semaphore, err = redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: namespace, Name: o.name, Logger: o.log})
	if err != nil {
		return nil, err
	}
	f.members, err = redislimiter.NewMembers(client, redislimiter.MembersConfig{Namespace: namespace, Name: o.name, Logger: o.log, OnChange: onCount})
	return f, err
}

// options returns the options by which a guard uses the fleet.
func (f *fleet) options() []middleware.Option {
	return []middleware.Option{middleware.WithBackend(f.store), middleware.WithSemaphore(f.semaphore)}
}

// needsFleet reports whether a limit holds all instances together.
func needsFleet(rules *hotparam.Rules) bool {
	return slices.ContainsFunc(rules.Rules, func(r hotparam.Rule) bool {
		return isShared(r.Limit) || slices.ContainsFunc(r.Except, func(e hotparam.Exception) bool { return isShared(e.Limit) })
	})
}

func isShared(l *hotparam.Limit) bool {
	return l != nil && l.Scope != "" && l.Scope != hotparam.ScopeInstance
}
