package attach

import (
	"context"

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

	// Guarded by Hotparam.mu:
	renews bool               // semaphore runs
	leave  context.CancelFunc // ends members; nil if they do not run
	left   chan struct{}      // closed when members have ended; nil if they never ran
}

// isJoined reports whether this instance is among those that share limits. The caller holds
// Hotparam.mu.
func (f *fleet) isJoined() bool { return f.leave != nil }

// followFleet joins the fleet or leaves it, as the rules need. After leaving, permits of other
// versions of the rules are renewed until they are released. The caller holds mu.
func (h *Hotparam) followFleet(rules *hotparam.Rules) {
	f := h.fleet
	switch needs := rules.ShareLimits(); {
	case h.closed || needs == f.isJoined():
	case !needs:
		f.leave()
		f.leave = nil
	default:
		if !f.renews {
			f.renews = true
			h.run(f.semaphore.Run)
		}
		before, left := f.left, make(chan struct{})
		ctx, leave := context.WithCancel(h.work)
		f.leave, f.left = leave, left
		h.run(func(context.Context) error {
			defer close(left)
			defer leave()
			if before != nil {
				<-before
			}
			return f.members.Run(ctx)
		})
	}
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
