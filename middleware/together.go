package middleware

import (
	"slices"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Part is one of several requests that a caller makes at once; see [Guard.BeginAll].
type Part struct {
	Request
	// Params are the parameters of a resource, whose name is the request's Pattern; see [Guard.Enter].
	Params []rules.Param
	// Peek makes the part take nothing: it is counted, and only checked whether it would pass.
	Peek bool
}

// BeginAll is [Guard.Begin] for several requests that pass together or not at all. If one of
// them is refused, the others return the tokens that they have taken from this process's limits,
// and take none from the backend. The backend is asked once for all parts, and the Context of
// the first part that asks it bounds the call. BeginAll returns the decision on each part, which
// is the decision of the part's own limits, in the order of the parts. The whole passes if each
// decision is Allowed. Otherwise all tickets are nil, and nothing remains to be ended.
//
// If several parts have to wait, they wait one after the other. A part that [WithSkip] lets pass
// is not counted, and its decision is Allowed.
func (g *Guard) BeginAll(parts []Part) (decisions []rules.Decision, tickets []*Ticket) {
	decisions, tickets = make([]rules.Decision, len(parts)), make([]*Ticket, len(parts))
	w := whole{parts: parts, requests: make([]*request, len(parts))}
	defer func() {
		if recover() != nil {
			g.stats.Panics.Add(1)
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
	w.askLocalLimits(g)
	w.decide(g, slices.DeleteFunc(slices.Clone(w.requests), func(r *request) bool { return r == nil }))
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
	refused  *request   // the part that was refused, or nil
}

// askLocalLimits counts the parts and asks the limits of this process.
func (w *whole) askLocalLimits(g *Guard) {
	for i := range w.parts {
		p := &w.parts[i]
		if g.opts.skip != nil && g.opts.skips(&p.Request) {
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
		if r.denied {
			w.refused = r
		}
	}
}

// decide asks the backend, once for all parts, and then permits. It asks neither if this
// process's limits have refused a part.
func (w *whole) decide(g *Guard, asked []*request) {
	if w.refused == nil {
		g.askBackend(asked...)
	}
	for _, r := range asked {
		if w.refused == nil && r.denied {
			w.refused = r
		}
	}
	for _, r := range asked {
		if w.refused == nil && r.pending.waits() && !r.waitForTurn() {
			w.refused = r
		}
	}
}

// finish implements request.finish for a part. The part keeps its grants only if all passed.
func (w *whole) finish(r *request, p *Part, d *rules.Decision) (t *Ticket) {
	refused := r.denied || r == w.refused
	if w.refused != nil || p.Peek {
		r.giveBack()
		r.dropTicket()
	}
	if r.denied {
		r.refuse()
	}
	if refused || w.refused == nil {
		r.recordDecision() // the other parts were not fully asked, and did not pass
	}
	return r.conclude(d)
}

// peekExact makes the backend only check whether the request would pass, instead of taking
// tokens. If the request would wait, the backend still makes a reservation, which is cancelled.
func (r *request) peekExact() {
	for i := range r.pending.byBackend {
		if op := &r.pending.byBackend[i].op; op.Kind == limiter.Take {
			op.Kind = limiter.Peek
		}
	}
}
