package middleware

import (
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Part is one of several requests that a caller makes at once; see [Guard.BeginAll].
type Part struct {
	Request
	// Params are those of a resource, which is then the request's Pattern; see [Guard.Enter].
	Params []rules.Param
	// Peek has the part take nothing: it is only checked whether it would pass. It is counted.
	Peek bool
}

// BeginAll is [Guard.Begin] for several requests that pass together or not at all: if one of
// them is refused, the others give back what they have taken of this process's limits, and take
// nothing of the backend, which is asked once for all parts. The Context of the first part that
// asks it bounds that call. It returns the decision on each
// part, which is that of its own limits, in their order. The whole passes if each decision is
// Allowed. Otherwise all tickets are nil, and nothing is left to be ended.
//
// Where several parts have to wait, they wait one after the other. An option that skips requests
// skips a part.
func (g *Guard) BeginAll(parts []Part) (decisions []rules.Decision, tickets []*Ticket) {
	decisions, tickets = make([]rules.Decision, len(parts)), make([]*Ticket, len(parts))
	w := whole{parts: parts, requests: make([]*request, len(parts))}
	defer func() {
		if recover() != nil {
			g.panics.Add(1)
			for i := range decisions {
				decisions[i] = rules.Decision{Allowed: true, Reason: rules.ReasonOpen}
			}
			for _, r := range w.requests {
				if r != nil {
					r.dropTicket()
				}
			}
		}
	}()
	w.begin(g)
	w.decide(g)
	for i, r := range w.requests {
		if r == nil {
			decisions[i].Allowed = true
			continue
		}
		w.requests[i] = nil
		tickets[i] = w.finish(r, &parts[i], &decisions[i])
		g.after(&parts[i].Request, &decisions[i])
	}
	return decisions, tickets
}

// whole is several requests that pass together or not at all.
type whole struct {
	parts    []Part
	requests []*request // by part; nil if an option skips the part
	refused  *request   // the one that was refused at the last, or nil
}

// begin counts the parts and asks the limits of this process.
func (w *whole) begin(g *Guard) {
	for i := range w.parts {
		p := &w.parts[i]
		if g.opts.skip != nil && g.skips(&p.Request) {
			continue
		}
		g.before(&p.Request)
		r := g.newRequest(&p.Request, g.routeOf(&p.Request), true)
		if p.Params != nil {
			r.setParams(p.Params)
		}
		r.applyRules()
		if p.Peek {
			r.peekExact()
		}
		w.requests[i] = r
		w.record(r, !r.verdict.denied)
	}
}

// decide asks what is not asked if this process's limits refuse a part: the backend, once for
// all parts, and then permits.
func (w *whole) decide(g *Guard) {
	if w.refused == nil {
		g.askBackend(w.requests...)
	}
	w.each(func(r *request) bool { return !r.verdict.denied })
	w.each(func(r *request) bool { return !r.pending.waits() || r.waitForTurn() })
}

// each calls do for the parts until one is refused.
func (w *whole) each(do func(r *request) (passed bool)) {
	for _, r := range w.requests {
		if w.refused != nil {
			return
		}
		if r != nil {
			w.record(r, do(r))
		}
	}
}

func (w *whole) record(r *request, passed bool) {
	if !passed {
		w.refused = r
	}
}

// finish is request.finish for a part: what the part has taken stays taken only if all passed.
func (w *whole) finish(r *request, p *Part, d *rules.Decision) (t *Ticket) {
	refused := r.verdict.denied || r == w.refused
	if w.refused != nil || p.Peek {
		r.giveBack()
		r.dropTicket()
	}
	if r.verdict.denied {
		r.refuse()
	}
	if refused || w.refused == nil {
		r.recordDecision() // others were not asked to the end, and did not pass
	}
	t = r.ticket
	r.verdict.copyTo(d)
	if !d.Allowed {
		r.guard.haveHandled(&r.in, r.verdict.decider, d)
	}
	r.recycle()
	return t
}

// peekExact has what the request would take of the backend only be looked at, except for what
// it would wait for: of that the backend makes a reservation, which is cancelled.
func (r *request) peekExact() {
	for i := range r.pending.exact {
		if op := &r.pending.exact[i].op; op.Kind == limiter.Take {
			op.Kind = limiter.Peek
		}
	}
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
