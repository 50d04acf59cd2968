package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// waitForTurn waits for the request's turns, then acquires its permits, and reports whether it
// got them. The request waits in all lines at once. All requests acquire permits in the order
// of the rules, so that they cannot deadlock. If waitForTurn panics, the request returns
// everything.
func (r *request) waitForTurn() (passed bool) {
	settled := false
	defer func() {
		if !settled {
			r.releasePermits()
			r.giveBack()
		}
	}()
	passed = r.waitForDelay() && r.acquirePermits()
	settled = true
	if r.pending.waited {
		r.guard.stats.Waited.Add(1)
		for i := range r.pending.turns {
			if passed {
				r.pending.turns[i].state.recordWait()
			}
		}
	}
	if passed && r.holds && len(r.pending.leases) > 0 {
		t := r.needTicket()
		t.leases = append(t.leases, r.pending.leases...)
		r.pending.leases = r.pending.leases[:0]
	}
	r.releasePermits()
	return passed
}

// waitForDelay waits for the request's turns, and reports whether all came before its context
// ended.
func (r *request) waitForDelay() bool {
	p := &r.pending
	switch {
	case !r.sleeps():
		if !r.guard.opts.shadow {
			r.verdict.decision.Delay = p.delay
		}
		return true
	case len(p.turns) == 0:
		return true
	}
	p.waited = true
	r.guard.stats.Waiting.Add(1)
	defer r.guard.stats.Waiting.Add(-1)
	for i := range p.turns {
		t := &p.turns[i]
		select {
		case <-t.waiter.Done():
			if d, _ := t.waiter.Denied(); d != nil { // neither a backendAsker nor a stock returns errors
				d.Rule = t.rule.ID
				r.addDenial(&t.claim, d)
				return false
			}
		case <-r.context().Done():
			r.endGone(rules.ReasonLimited)
			return false
		}
	}
	return true
}

// endGone refuses a request whose context has ended and that no limit has denied.
func (r *request) endGone(reason rules.Reason) {
	r.guard.stats.Gone.Add(1)
	r.pending.waited = true
	d := &r.verdict.decision
	d.Allowed, d.Reason = false, reason
	d.RetryAfter = r.pending.delay
}

// waitedFrom is the minimum time to acquire a permit that counts as a wait.
const waitedFrom = time.Millisecond

// acquirePermits acquires the permits that the request needs, and reports whether it got
// all of them.
func (r *request) acquirePermits() bool {
	p, v := &r.pending, &r.verdict
	var got rules.Decision
	for i := range p.permits {
		c := &p.permits[i]
		if !got.Allowed || !c.isOfHold(&p.permits[i-1]) {
			r.trace.beforePermit(r, c)
			start := time.Now()
			lease, decision, err := r.acquire(c)
			if c.spec.waits() && time.Since(start) >= waitedFrom {
				if p.waited = true; decision.Allowed {
					c.state.recordWait()
				}
			}
			if err != nil { // the request's context has ended
				v.decision.Rule = c.rule.ID
				r.endGone(rules.ReasonBusy)
				return false
			}
			if lease != (semaphore.Lease{}) {
				p.leases = append(p.leases, lease)
			}
			got = decision
		}
		c.state.record(got.Allowed)
		got.Rule = c.rule.ID
		switch {
		case !got.Allowed:
			r.addDenial(&c.claim, &got)
		case v.decision.Reason == rules.ReasonNone:
			v.set(&c.claim, &got)
		}
		if r.denied {
			for j := range p.permits[:i] {
				p.permits[j].state.revoke()
			}
			return false
		}
	}
	return true
}

// acquire acquires one permit. While the semaphore of all instances is unavailable, the
// limit's when_redis_is_away decides. An error means that the request may wait and its
// context has ended.
func (r *request) acquire(c *permitClaim) (semaphore.Lease, rules.Decision, error) {
	g, l := r.guard, c.spec.limit
	if c.permits() == 0 {
		return semaphore.Lease{}, heldBack, nil
	}
	ask := semaphore.Request{Permits: c.permits(), Class: c.class, Keep: l.Scope == rules.ScopeFleet && c.mayKeep(g.instances())}
	if l.Mode == rules.ModeWait && !g.opts.shadow && !g.opts.noWait && !r.in.NoWait {
		ask.Queue, ask.Within = l.Queue, max(0, l.Wait-r.pending.delay)
		g.stats.Waiting.Add(1)
		defer g.stats.Waiting.Add(-1)
		if ask.Queue == 0 {
			ask.Queue = rules.DefaultQueue
		}
	}
	ctx := r.context()
	if ask.Within == 0 { // the end of the context only ends waits
		ctx = context.WithoutCancel(ctx)
	}
	if l.Scope.InRedis() {
		key := c.key
		if c.hold == nil {
			key = c.spec.name + " " + key
		}
		lease, got, err := g.opts.semaphore.Acquire(ctx, key, ask)
		switch {
		case err == nil || ctx.Err() != nil:
			return lease, got, err
		case c.spec.whenAway() == rules.OutageOpen:
			return semaphore.Lease{}, rules.Decision{Allowed: true, Reason: rules.ReasonOpen}, nil
		case c.spec.whenAway() == rules.OutageClosed:
			return semaphore.Lease{}, rules.Decision{Reason: rules.ReasonUnavailable}, nil
		}
	}
	if l.Scope.InRedis() || l.Scope == rules.ScopeShare {
		ask.Permits = g.permitsPart(ask.Permits)
	}
	if c.hold != nil {
		return g.heldPermits.Acquire(ctx, c.key, ask)
	}
	return c.spec.permits.Acquire(ctx, c.key, ask)
}

// holdRetry is the RetryAfter of a request of a key that is held to no request at a time: about the
// time after which a trial ends.
const holdRetry = 2 * time.Second

// heldBack is the decision on a request of such a key.
var heldBack = rules.Decision{Reason: rules.ReasonBusy, RetryAfter: holdRetry}

// beforePermit takes all permits that the request is about to ask for.
func (t *trace) beforePermit(r *request, c *permitClaim) {
	if !t.usesUp() {
		return
	}
	for range c.permits() {
		if _, got, err := r.acquire(c); !got.Allowed || err != nil {
			return
		}
	}
}
