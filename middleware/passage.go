package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// passage is a request that is within its limits of rate, and has yet to wait, or to
// get permits. It first waits, once, for the longest of its delays, and then gets its
// permits in the order of the rules, which is the same for all, so that no two
// requests wait for each other. Nothing that others need is held meanwhile but
// permits.
type passage struct {
	guard *Guard
	ruling
	course
	ctx    context.Context
	leases []semaphore.Lease
	waited bool
}

// wanted is a permit that a request needs.
type wanted struct {
	terms *terms
	held  *held // to count what becomes of it; nil: it is no hot key's, or counted already
	rule  string
	key   string
	class int
}

// leave takes what is left to do out of a scratch, so that it can be used by others.
func (g *Guard) leave(s *scratch) *passage {
	p := g.passages.Get().(*passage)
	p.ctx, p.ruling = s.req.context(), s.ruling
	p.course, s.course = s.course, p.course
	return p
}

// done makes the passage ready for another request.
func (p *passage) done() {
	const keep = 64 << 10
	if cap(p.takenKeys) > keep {
		return
	}
	clear(p.leases)
	p.course.reset()
	p.ctx, p.ruling, p.leases, p.waited = nil, ruling{}, p.leases[:0], false
	p.guard.passages.Put(p)
}

// pass does what is left to do. Whatever happens, a panic included, a request that
// does not pass keeps nothing.
func (p *passage) pass(d *hotparam.Decision) outcome {
	g := p.guard
	settled := false
	defer func() {
		if !settled { // a panic
			p.undo()
		}
	}()
	passed := p.wait(d) && p.acquire(d)
	settled = true
	if p.waited {
		g.waited.Add(1)
	}
	switch {
	case !passed:
		p.undo()
		if p.denied {
			g.refuse(&p.ruling, d)
		}
	case p.holds && len(p.leases) > 0:
		t := p.ticketOf(g)
		t.leases = append(t.leases, p.leases...)
		p.leases = p.leases[:0]
	}
	p.release()
	o := outcome{p.ticket.unless(!d.Allowed), p.decider}
	p.done()
	return o
}

// undo gives back all that was taken.
func (p *passage) undo() {
	p.release()
	p.guard.giveBack(&p.course)
}

// release gives back the permits that were got.
func (p *passage) release() {
	for _, lease := range p.leases {
		lease.Release()
	}
	clear(p.leases)
	p.leases = p.leases[:0]
}

// wait waits for the delay; false: the request has gone.
func (p *passage) wait(d *hotparam.Decision) bool {
	switch {
	case p.delay <= 0 || p.guard.opts.shadow:
		return true
	case p.guard.opts.noWait:
		d.Delay = p.delay
		return true
	}
	p.waited = true
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		p.gone(d, hotparam.ReasonLimited)
		return false
	}
}

// gone decides on a request whose context has ended.
func (p *passage) gone(d *hotparam.Decision, reason hotparam.Reason) {
	p.guard.gone.Add(1)
	p.waited = true
	d.Allowed, d.Reason = false, reason
	d.RetryAfter = p.delay
}

// waitedFrom is how long it takes to get a permit if that counts as a wait.
const waitedFrom = time.Millisecond

// acquire gets the permits; false: not all of them.
func (p *passage) acquire(d *hotparam.Decision) bool {
	g := p.guard
	for i := range p.wanted {
		w := &p.wanted[i]
		start := time.Now()
		lease, got, err := g.permit(p, w)
		p.waited = p.waited || w.terms.waits() && time.Since(start) >= waitedFrom
		if err != nil { // its context has ended
			d.Rule = w.rule
			p.gone(d, hotparam.ReasonBusy)
			return false
		}
		if lease != nil {
			p.leases = append(p.leases, lease)
		}
		w.held.note(got.Allowed)
		got.Rule = w.rule
		switch {
		case !got.Allowed:
			g.deny(&p.ruling, w.terms, d, &got)
		case d.Reason == hotparam.ReasonNone:
			p.tell(w.terms, d, &got)
		}
		if p.denied {
			p.notPassed(p.wanted[:i])
			return false
		}
	}
	return true
}

// notPassed puts right what was counted of hot keys whose permits are given back.
func (p *passage) notPassed(list []wanted) {
	for i := range list {
		if h := list[i].held; h != nil {
			h.passed.Add(-1)
			h.refused.Add(1)
		}
	}
}

// permit asks for one permit. While who counts for all instances is away the limit
// tells what is done. An error: the context has ended of a request that may wait.
func (g *Guard) permit(p *passage, w *wanted) (semaphore.Lease, hotparam.Decision, error) {
	l := w.terms.limit
	ask := semaphore.Ask{Permits: int64(l.Concurrency), N: 1, Class: w.class}
	if l.Mode == hotparam.ModeWait && !g.opts.shadow && !g.opts.noWait {
		ask.Queue, ask.Within = l.Queue, max(0, l.Wait-p.delay)
		if ask.Queue == 0 {
			ask.Queue = hotparam.DefaultQueue
		}
	}
	ctx := p.ctx
	if ask.Within == 0 { // that a client goes away ends a wait, and refuses nobody else
		ctx = context.WithoutCancel(ctx)
	}
	if l.Scope == hotparam.ScopeExact {
		lease, got, err := g.opts.semaphore.Acquire(ctx, w.terms.name+" "+w.key, ask)
		switch {
		case err == nil || ctx.Err() != nil:
			return lease, got, err
		case w.terms.away() == hotparam.AwayOpen:
			return nil, hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}, nil
		case w.terms.away() == hotparam.AwayClosed:
			return nil, hotparam.Decision{Reason: hotparam.ReasonAway}, nil
		}
	}
	if l.Scope == hotparam.ScopeExact || l.Scope == hotparam.ScopeShare {
		ask.Permits = max(1, ask.Permits/int64(g.instances()))
	}
	return w.terms.permits.Acquire(ctx, w.key, ask)
}
