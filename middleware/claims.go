package middleware

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// claimLater adds to r.pending the question to the backend and the permits to acquire. They
// are due once this process's limits have allowed the request.
func (r *request) claimLater(cl *claim, key string) {
	quota := cl.spec.quota.Load()
	if quota != nil && cl.spec.byBackend {
		ask := r.askFor(cl)
		ask.Together = cl.spec.limit.Mode != rules.ModeShadow
		c := backendClaim{claim: *cl, op: limiter.Op{Quota: quota, Name: cl.spec.name, Key: key, Request: ask}}
		if cl.state != nil && r.mayBorrow(cl) {
			c.stock = cl.state.stockFor(r.guard.fleet, cl.spec, r.classOf(cl), func() string { return key })
		}
		r.pending.byBackend = append(r.pending.byBackend, c)
	}
	if cl.spec.permits != nil {
		r.claimPermits(cl, key)
	}
}

// askFor returns the question that the request asks a limit. It fills the result in one place: a copy
// right after some fields were written would wait for the processor's store buffer.
func (r *request) askFor(cl *claim) limiter.Request {
	var (
		kind   limiter.OpKind
		left   int64
		within time.Duration
	)
	if cl.spec.limit.Priority != nil {
		left = fleet.Reserve(cl.spec.quota.Load().Burst, r.classOf(cl), cl.spec.limit.Priority.Classes())
	}
	switch {
	case cl.rule.Count != rules.Requests:
		kind = limiter.Peek
	case cl.spec.waits() && !r.guard.opts.shadow:
		kind, within = limiter.Reserve, r.maxWait(cl.spec.limit.Wait)
	}
	return limiter.Request{Kind: kind, N: 1, Keep: left, Within: within}
}

// class returns the request's class by a rule's priority: the first class that one of the
// parameter's values has, or the last class if none has one.
func (r *request) class(c *candidate, p *rules.Priority) int {
	params := r.loadParams(c)
	class := p.Classes() - 1
	for i := range params.Len() {
		if q := params.At(i); q.Name == p.Name && q.Source == p.Source {
			if index := slices.Index(p.First, q.Value); index >= 0 {
				class = min(class, index)
			}
		}
	}
	return class
}

// classOf returns the request's class by the priority of a limit, or 0 if that has none.
func (r *request) classOf(cl *claim) int {
	if p := cl.spec.limit.Priority; p != nil {
		return r.class(cl.rule, p)
	}
	return 0
}

// claimPermits adds to r.pending the permits to acquire.
func (r *request) claimPermits(cl *claim, key string) {
	p := permitClaim{claim: *cl, key: key, class: r.classOf(cl)}
	if cl.spec.quota.Load() != nil {
		p.state = nil // the quota's result counts
	}
	r.pending.permits = append(r.pending.permits, p)
}

// claimHold adds to r.pending the permit of a back end to acquire. Permits of back ends come before
// those of keys, in the order of their names, so that all requests acquire them in the same order.
func (r *request) claimHold(cl *claim, h *published.Hold) {
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

// keyText returns a copy of the text of the request's key.
func (r *request) keyText(c *candidate) string { return string(r.key[len(c.prefix):]) }

// mayBorrow reports whether the request takes permits that instances hold. A request that is told
// how long to wait, and does not wait here, needs a reservation, which only the backend makes.
func (r *request) mayBorrow(cl *claim) bool {
	return cl.spec.lends(r.guard) && (!cl.spec.waits() || r.sleeps())
}

// lends reports whether instances hold permits of the limit's hot keys. If not, each request asks
// the backend, as with scope: exact; see [fleet.FitOf].
func (s *limitSpec) lends(g *Guard) bool {
	return g.fleet != nil && g.instances() <= s.holders && (s.unit != rules.Requests || g.fleet.Running())
}

// needTicket returns the request's ticket, which is made on first use.
func (r *request) needTicket() *Ticket {
	if r.ticket == nil {
		r.ticket = r.guard.tickets.Get().(*Ticket)
	}
	return r.ticket
}

// chargeAtEnd records that the request's cost is charged to the key when the request ends, if
// the rule counts costs.
func (r *request) chargeAtEnd(cl claim, hash uint64, key []byte) {
	if !r.holds || !r.asks || cl.rule.Count == rules.Requests {
		return
	}
	t := r.needTicket()
	from := len(t.keys)
	t.keys = append(t.keys, key...)
	t.metered = t.metered || cl.rule.costs
	t.owed = append(t.owed, owed{rule: cl.rule.rule, spec: cl.spec, hash: hash, from: from, to: len(t.keys)})
}
