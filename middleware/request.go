package middleware

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// request is one request on its path through the guard: the input, the keys that rules make
// from it, the verdict, the grants and the pending steps. Its steps are methods, in the order of
// doc.go. Requests are pooled: one belongs to the goroutine that serves it, from newRequest to
// recycle.
type request struct {
	guard *Guard
	in    Request
	route *route
	trace *trace // nil, except for requests of Explain

	params  params
	body    body
	redact  *keytext.Redactor // nil until a value is redacted
	plain   []byte            // buffer for a key's text with plain values
	key     []byte            // the key of the present rule, in its form in the hot set
	groups  groups
	path    []byte        // buffer for the canonical path
	matched []string      // keys that the matchers returned, by rule
	clock   time.Duration // the time that its limits use; 0 if none has asked for it

	verdict verdict
	grants  grants
	pending pending

	counts bool // whether it is counted
	asks   bool // whether its limits are asked
	// What a pass that asks no limits finds; see shareOrLimit.
	unasked  bool       // there is something to ask or to refuse
	refusing bool       // the request is refused, whatever its limits
	shared   *sharedKey // the hot key for which it is answered together with others, or nil
	unshared *rule      // the rule that counts it as such although its limits are asked now, or nil

	shard  uint32  // index into counters that all requests add to
	holds  bool    // whether it holds permits and owes costs until its ticket ends
	ticket *Ticket // nil until something has to be done at the end

	controlled controlled
}

// verdict is the merged result of a request's limits.
type verdict struct {
	decision rules.Decision
	denied   bool
	decider  *limitSpec // the limit that decided, or nil
	hash     uint64     // hash of the key that it decided on
}

// pending holds the remaining steps of a request once this process's limits have allowed it.
type pending struct {
	byBackend []backendClaim // claims on limits that the backend decides
	asked     int            // number of claims in byBackend that it has decided on
	delay     time.Duration  // time to wait before the request proceeds
	turns     []turn         // places in the lines where it waits during the delay
	permits   []permitClaim
	leases    []semaphore.Lease // leases of the acquired permits
	waited    bool
}

// claim is one limit that applies to a request.
type claim struct {
	rule  *candidate
	spec  *limitSpec // the rule's limit, or an exception's
	hash  uint64     // hash of the key, or of the limit if there is no key
	state *hotState  // state of the hot key that counts the result, or nil
}

// newRequest returns a request on route.
func (g *Guard) newRequest(in *Request, route *route, holds bool) *request {
	r := g.requests.Get().(*request)
	r.in, r.route, r.holds = *in, route, holds
	r.counts, r.asks = in.Steps.counts(), true
	return r
}

// recycle returns the request to the pool without any of its strings. It drops a request whose
// buffers have grown far beyond the usual size.
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
	r.unasked, r.refusing, r.shared, r.unshared = false, false, nil, nil
	r.clock = 0
	r.body.state = bodyUnknown
	r.verdict.reset()
	r.guard.requests.Put(r)
}

// waits reports whether the request has to wait for its turn or to acquire permits.
func (p *pending) waits() bool { return p.delay > 0 || len(p.turns) > 0 || len(p.permits) > 0 }

// reset drops everything and keeps the memory.
func (p *pending) reset() {
	clear(p.byBackend)
	clear(p.permits)
	clear(p.turns)
	p.byBackend, p.permits, p.turns = p.byBackend[:0], p.permits[:0], p.turns[:0]
	p.delay, p.asked, p.waited = 0, 0, false
}

func (r *request) now() time.Duration {
	if r.clock == 0 {
		r.clock = r.guard.opts.clock()
	}
	return r.clock
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

// finish performs the pending steps, writes the decision to d, and recycles the request. It
// returns the request's ticket, or nil if nothing has to be done at its end.
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
		r.unshared.spec.decisions.asked.addOne(r.shard)
	}
	if !d.Allowed {
		r.dropTicket()
		r.guard.haveHandled(&r.in, r.verdict.decider, d)
	}
	ticket := r.ticket
	r.recycle()
	return ticket
}
