package middleware

import (
	"context"

	"github.com/hotparam/hotparam/limiter"
)

// giveBack returns everything that the request was granted.
func (r *request) giveBack() {
	if len(r.grants.list) > 0 {
		now := r.guard.opts.clock()
		for i := range r.grants.list {
			r.grants.list[i].giveBack(now, r.grants.keys)
		}
	}
	if len(r.pending.byBackend) > 0 {
		r.giveBackExact()
	}
	r.leaveLines()
}

// giveBackExact returns to the backend, in one call, all that the request took from it. The
// request's context may have ended, so the backend's own deadline bounds the call.
func (r *request) giveBackExact() {
	g := r.guard
	var (
		ops   []limiter.Op
		views []*limiter.Failover
	)
	for i := range r.pending.byBackend {
		if c := &r.pending.byBackend[i]; c.back.N > 0 {
			ops, views = append(ops, c.back), append(views, g.backends[c.spec.whenAway()])
			c.state.revoke()
		}
	}
	if len(ops) > 0 { // if the backend is unavailable, the tokens stay taken
		_ = g.failover.DoAllBy(context.Background(), views, ops, make([]limiter.Result, len(ops)))
	}
}

// leaveLines leaves the lines in which the request waits or has waited.
func (r *request) leaveLines() {
	for i := range r.pending.turns {
		t := &r.pending.turns[i]
		t.state.revoke()
		_ = t.waiter.Leave(context.Background()) // if the backend is unavailable, the reservation stays taken
	}
}

// releasePermits releases the permits that the request has acquired, unless its ticket holds
// them.
func (r *request) releasePermits() {
	leases := r.pending.leases
	for _, lease := range leases {
		lease.Release()
	}
	clear(leases[:cap(leases)]) // including leases moved to the ticket
	r.pending.leases = leases[:0]
}

// dropTicket releases the permits of the request's ticket and charges nothing.
func (r *request) dropTicket() {
	if t := r.ticket; t != nil {
		for _, lease := range t.leases {
			lease.Release()
		}
		t.reuse()
		r.ticket = nil
	}
}
