package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// request is one request on its way through the guard: the input, the keys that rules make
// of it, the verdict, what was granted and what is pending. Its steps are methods, in the
// order of doc.go. Requests are pooled: one belongs to the goroutine that serves it, from
// newRequest to recycle.
type request struct {
	guard *Guard
	in    Request
	route *route
	trace *trace // nil unless the request is one that Explain makes

	params  params
	body    body
	redact  *rules.Redactor // nil until a value is redacted
	plain   []byte          // buffer for a key's text with plain values
	key     []byte          // the key of the present rule, in its form in the hot set
	groups  groups
	path    []byte   // buffer for the canonical path
	matched []string // by rule: the key that its matcher returned
	clock   instant

	verdict verdict
	grants  grants
	pending pending

	shard  uint32  // of counters that all requests add to
	holds  bool    // it holds permits and owes costs until its ticket ends
	ticket *Ticket // nil until there is something to do at the end

	controlled controlled
}

// verdict is what the limits said of a request, merged.
type verdict struct {
	decision rules.Decision
	denied   bool
	decider  *limitSpec // the limit that decided, or nil
	hash     uint64     // of the key that it decided on
}

// pending is what a request still has to do once this process's limits have allowed it.
type pending struct {
	exact   []exactClaim
	asked   int           // of exact: claims that the backend has decided
	delay   time.Duration // to wait before it goes on
	turns   []turn        // in the lines that it stands in meanwhile
	permits []permitClaim
	leases  []semaphore.Lease // of the permits that it has acquired
	waited  bool
}

// claim is one limit that a request has to keep.
type claim struct {
	rule  *candidate
	spec  *limitSpec // the rule's limit, or an exception's
	hash  uint64     // of the key, or of the limit if there is none
	state *hotState  // of the hot key that counts the result, or nil
}

// newRequest returns a request on route.
func (g *Guard) newRequest(in *Request, route *route, holds bool) *request {
	r := g.requests.Get().(*request)
	r.in, r.route, r.holds = *in, route, holds
	return r
}

// recycle returns the request to the pool, without any of its strings, and drops it if
// its buffers have grown far beyond the usual.
func (r *request) recycle() {
	const keep = 64 << 10
	if cap(r.key) > keep || cap(r.grants.keys) > keep || len(r.in.Query)+len(r.in.Path) > keep || cap(r.params.fields) > keep/64 || r.params.list.Len() > keep/64 {
		return
	}
	r.params.reset()
	if len(r.matched) > 0 {
		r.params.custom.Reset()
		clear(r.matched)
		r.matched = r.matched[:0]
	}
	r.grants.reset()
	r.pending.reset()
	r.in, r.route, r.ticket, r.trace = Request{}, nil, nil, nil
	r.clock.read = false
	r.body.state = bodyUnknown
	r.verdict.reset()
	r.guard.requests.Put(r)
}

// waits reports whether the request has to wait for its turn or to acquire permits.
func (p *pending) waits() bool { return p.delay > 0 || len(p.turns) > 0 || len(p.permits) > 0 }

// reset drops everything and keeps the memory. It writes only what was written, since
// nearly all requests have nothing pending.
func (p *pending) reset() {
	if len(p.exact) > 0 {
		clear(p.exact)
		p.exact = p.exact[:0]
	}
	if len(p.permits) > 0 {
		clear(p.permits)
		p.permits = p.permits[:0]
	}
	if len(p.turns) > 0 {
		clear(p.turns)
		p.turns = p.turns[:0]
	}
	p.delay, p.asked, p.waited = 0, 0, false
}

// instant is the time that a request's limits use. It is read once, and only for requests
// that meet a limit.
type instant struct {
	now  time.Duration
	read bool
}

func (r *request) now() time.Duration {
	if !r.clock.read {
		r.clock.now, r.clock.read = r.guard.opts.clock(), true
	}
	return r.clock.now
}

// context returns the request's context, or one that never ends.
func (r *request) context() context.Context {
	if r.in.Context == nil {
		return context.Background()
	}
	return r.in.Context
}

// maxWait returns how long the request may wait, at most limit.
func (r *request) maxWait(limit time.Duration) time.Duration {
	if r.in.Context == nil {
		return limit
	}
	if end, ok := r.in.Context.Deadline(); ok {
		return max(0, min(limit, time.Until(end)))
	}
	return limit
}

// finish does what is pending, writes the decision to d, and recycles the request. It returns
// the request's ticket, or nil if there is nothing to do at its end.
func (r *request) finish(d *rules.Decision) *Ticket {
	if !r.verdict.denied {
		r.askBackend()
	}
	passed := !r.verdict.denied
	if passed && r.pending.waits() {
		passed = r.waitForTurn()
	}
	if !passed {
		r.giveBack()
		if r.verdict.denied {
			r.refuse()
		}
	}
	r.recordDecision()
	ticket := r.ticket
	r.verdict.copyTo(d)
	if !d.Allowed {
		if ticket != nil {
			ticket.reuse()
			ticket = nil
		}
		r.guard.haveHandled(&r.in, r.verdict.decider, d)
	}
	r.recycle()
	return ticket
}
