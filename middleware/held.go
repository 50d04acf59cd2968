package middleware

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// limitHeld asks for a permit of the back end whose time a hot key takes, if its rule's limit has
// concurrency: auto. A key that an operator pins has no hold, and needs no permit.
func (r *request) limitHeld(cl *claim, h *rules.Hold) {
	switch {
	case h.Holds():
		r.claimHold(cl, h)
	case cl.spec.quota.Load() == nil:
		cl.state.recordExempt()
	}
}

// claimHold adds to r.pending the permit of a back end to acquire. Permits of back ends come before
// those of keys, in the order of their names, so that all requests acquire them in the same order.
func (r *request) claimHold(cl *claim, h *rules.Hold) {
	p := permitClaim{claim: *cl, key: holdKey(h.Pool), class: r.classOf(cl), hold: h}
	if r.ticket != nil {
		for i := len(r.ticket.owed) - 1; i >= 0 && r.ticket.owed[i].rule == cl.rule.rule && r.ticket.owed[i].hash == cl.hash; i-- {
			r.ticket.owed[i].permit = true
		}
	}
	if cl.spec.quota.Load() != nil {
		p.state = nil // the quota's result counts
	}
	place := 0
	for _, other := range r.pending.permits {
		if other.hold == nil || other.key > p.key {
			break
		}
		place++
	}
	r.pending.permits = slices.Insert(r.pending.permits, place, p)
}

// holdKey returns the semaphore's key of a back end. It has no space, unlike the keys of limits.
func holdKey(pool string) string { return "backend:" + pool }

// isOfHold reports whether the claim is for the same permit as one before it: a request needs one
// permit of a back end, however many of its keys are held.
func (c *permitClaim) isOfHold(before *permitClaim) bool {
	return c.hold != nil && before.hold != nil && c.key == before.key
}

// permits returns the number of permits that the claim's key has.
func (c *permitClaim) permits() int64 {
	if c.hold != nil {
		return c.hold.Permits
	}
	return int64(c.spec.limit.Concurrency)
}

// mayKeep reports whether an instance may keep a released permit of the claim's key. If a back end
// has fewer permits than there are instances, a permit that one keeps is missing at another.
func (c *permitClaim) mayKeep(instances int) bool {
	return c.hold == nil || c.hold.Permits >= int64(instances)
}

// holdRetry is the RetryAfter of a request of a key that is held to no request at a time: about the
// time after which a trial ends.
const holdRetry = 2 * time.Second

// heldBack is the decision on a request of such a key.
var heldBack = rules.Decision{Reason: rules.ReasonBusy, RetryAfter: holdRetry}
