package hotparam

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// fleetParts are the parts for limits that hold for all instances together. With scope: exact
// Redis decides; with scope: share the number of live instances does. Rules with neither
// need no fleet and write nothing to Redis.
type fleetParts struct {
	guard     *middleware.Guard // set when it is made, which needs the options
	store     *redislimiter.Store
	semaphore *redislimiter.Semaphore
	members   *redislimiter.Members
	assumed   atomic.Int64 // number of instances in the file; 0 if it has none

	// Guarded by Hotparam.mu:
	renews bool               // whether semaphore runs
	leave  context.CancelFunc // ends members; nil if they do not run
	left   chan struct{}      // closed when members have ended; nil if they never ran
}

// isJoined reports whether this instance shares limits with others. The caller holds
// Hotparam.mu.
func (f *fleetParts) isJoined() bool { return f.leave != nil }

// follow joins the fleet or leaves it, as the rules need. After leaving, permits of other versions
// of the rules are renewed until they are released. Its tasks run until ctx ends. The caller holds
// Hotparam.mu.
func (f *fleetParts) follow(ctx context.Context, run func(func(context.Context) error), rules *rules.Rules) {
	switch needs := rules.ShareLimits(); {
	case needs == f.isJoined():
	case !needs:
		f.leave()
		f.leave = nil
	default:
		_ = f.guard.HandOver() // until members say what this instance holds
		if !f.renews {
			f.renews = true
			run(f.semaphore.Run)
		}
		before, left := f.left, make(chan struct{})
		ctx, leave := context.WithCancel(ctx)
		f.leave, f.left = leave, left
		run(func(context.Context) error {
			defer close(left)
			defer leave()
			if before != nil {
				<-before
			}
			return f.members.Run(ctx)
		})
	}
}

// assume makes the guard divide its limits by instances until the members are known. The
// caller holds Hotparam.mu.
func (f *fleetParts) assume(instances int) {
	f.assumed.Store(int64(instances))
	if f.members.Count() == 0 {
		f.guard.SetInstances(instances)
	}
}

// shares hands over the shared limits of the guard, which is made after its fleet.
type shares struct{ f *fleetParts }

func (s shares) HandOver() []byte { return s.f.guard.HandOver() }
func (s shares) Inherit(handover []byte, age time.Duration) error {
	return s.f.guard.Inherit(handover, age)
}
func (s shares) Endow(idle time.Duration) { s.f.guard.Endow(idle) }

// newFleet returns a fleet, whose guard gets each new number of instances.
func newFleet(client redis.UniversalClient, namespace string, o *options) (f *fleetParts, err error) {
	f = new(fleetParts)
	if f.store, err = redislimiter.New(client, redislimiter.Config{Namespace: namespace}); err != nil {
		return nil, err
	}
	f.semaphore, err = redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: namespace, Name: o.name, Logger: o.log})
	if err != nil {
		return nil, err
	}
	f.members, err = redislimiter.NewMembers(client, redislimiter.MembersConfig{
		Namespace: namespace, Name: o.name, Logger: o.log, Shares: shares{f},
		OnChange: func(n int) { f.guard.SetInstances(n) },
		Assumed:  func() int { return int(max(1, f.assumed.Load())) },
	})
	return f, err
}

// options returns the options by which a guard uses the fleet.
func (f *fleetParts) options() []middleware.Option {
	return []middleware.Option{middleware.WithBackend(f.store), middleware.WithSemaphore(f.semaphore)}
}
