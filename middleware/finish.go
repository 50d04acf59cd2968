package middleware

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// finish performs the pending steps, writes the decision to d, and recycles the request. It
// returns the request's ticket, or nil if nothing has to be done at its end.
func (r *request) finish(d *rules.Decision) *Ticket {
	if !r.denied {
		r.askBackend()
	}
	passed := !r.denied
	if passed && r.pending.waits() {
		passed = r.waitForTurn()
	}
	if !passed {
		r.giveBack()
		if r.denied {
			r.refuse()
		}
	}
	r.recordDecision()
	return r.conclude(d)
}

// conclude writes the decision to d, and recycles the request. It returns the ticket of a request
// that passes.
func (r *request) conclude(d *rules.Decision) *Ticket {
	if r.shared != nil {
		r.dropTicket()
		r.shared.decide(d, r.shard)
	} else {
		r.verdict.copyTo(d)
	}
	if r.unshared != nil {
		r.unshared.decisions.asked.addOne(r.shard)
	}
	if !d.Allowed {
		r.dropTicket()
		r.guard.haveHandled(&r.in, r.verdict.decider, d)
	}
	ticket := r.ticket
	r.recycle()
	return ticket
}

// refuse sets the decision on a denied request: it passes in shadow mode, is answered instead
// of the handler, or is refused. The denial of a run that refreshes an answer refuses no request.
func (r *request) refuse() {
	if r.in.run.refreshes() {
		return
	}
	g, d := r.guard, &r.verdict.decision
	if g.opts.shadow {
		g.stats.Shadowed.Add(1)
		r.verdict.pass(rules.ReasonShadow, d.Rule)
		return
	}
	g.stats.Limited.Add(1)
	d.Backoff = r.backoff(d, &r.verdict)
	switch d.Reason {
	case rules.ReasonBlocked:
		g.stats.Blocked.Add(1)
	case rules.ReasonBusy:
		g.stats.Busy.Add(1)
	case rules.ReasonUnavailable:
		g.stats.Unavailable.Add(1)
	}
	if r.verdict.serves() {
		g.stats.Served.Add(1)
		d.Reason = rules.ReasonServed
	}
}

// backoff returns how long a request that d refuses should wait, or 0 if no retry can pass.
func (r *request) backoff(d *rules.Decision, v *verdict) time.Duration {
	after := d.RetryAfter
	if d.Reason == rules.ReasonBusy || d.Reason == rules.ReasonUnavailable {
		after = max(after, 1) // RetryAfter may be unknown
	}
	if after <= 0 || v.decider == nil {
		return 0
	}
	return r.guard.backoffs.Next(v.hash, r.now(), after, v.decider.interval(d, r.guard.instances()))
}
