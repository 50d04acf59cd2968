package hotparam

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// fleetParts are the parts for limits that hold for all instances together. With scope: exact
// Redis decides; with scope: share the number of live instances does. Rules with neither
// need no fleet and write nothing to Redis.
type fleetParts struct {
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

// followFleet joins the fleet or leaves it, as the rules need. After leaving, permits of other
// versions of the rules are renewed until they are released. The caller holds mu.
func (h *Hotparam) followFleet(rules *rules.Rules) {
	f := h.fleet
	switch needs := rules.ShareLimits(); {
	case h.closed || needs == f.isJoined():
	case !needs:
		f.leave()
		f.leave = nil
	default:
		_ = h.guard.HandOver() // until members say what this instance holds
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

// assume makes the guard divide its limits by instances until the members are known. The
// caller holds mu.
func (h *Hotparam) assume(instances int) {
	h.fleet.assumed.Store(int64(instances))
	if h.fleet.members.Count() == 0 {
		h.guard.SetInstances(instances)
	}
}

// shares hands over the shared limits of h's guard, which is made after its fleet.
type shares struct{ h *Hotparam }

func (s shares) HandOver() []byte { return s.h.guard.HandOver() }
func (s shares) Inherit(handover []byte, age time.Duration) error {
	return s.h.guard.Inherit(handover, age)
}
func (s shares) Endow(idle time.Duration) { s.h.guard.Endow(idle) }

// newFleet returns the fleet of h, whose guard gets each new number of instances.
func (h *Hotparam) newFleet(namespace string, o *options) (f *fleetParts, err error) {
	f = new(fleetParts)
	if f.store, err = redislimiter.New(h.client, redislimiter.Config{Namespace: namespace}); err != nil {
		return nil, err
	}
	f.semaphore, err = redislimiter.NewSemaphore(h.client, redislimiter.SemaphoreConfig{Namespace: namespace, Name: o.name, Logger: o.log})
	if err != nil {
		return nil, err
	}
	f.members, err = redislimiter.NewMembers(h.client, redislimiter.MembersConfig{
		Namespace: namespace, Name: o.name, Logger: o.log, Shares: shares{h},
		OnChange: func(n int) { h.guard.SetInstances(n) },
		Assumed:  func() int { return int(max(1, f.assumed.Load())) },
	})
	return f, err
}

// options returns the options by which a guard uses the fleet.
func (f *fleetParts) options() []middleware.Option {
	return []middleware.Option{middleware.WithBackend(f.store), middleware.WithSemaphore(f.semaphore)}
}
