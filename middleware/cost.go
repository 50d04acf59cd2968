package middleware

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// Cost is the cost of a request. Each rule uses the field of its unit.
type Cost struct {
	Bytes int64         // length of the response's body
	Units int64         // sum of the handler's calls of AddCost
	Time  time.Duration // duration of the handler
}

// maxCost bounds the cost of one request so that no sum overflows: 1 TiB, or as many
// units or milliseconds.
const maxCost = 1 << 40

// inUnit returns the cost in a rule's unit. Time is in milliseconds, rounded up.
func (c *Cost) inUnit(u rules.Unit) int64 {
	n := int64(0)
	switch u {
	case rules.Requests:
		n = 1
	case rules.Bytes:
		n = c.Bytes
	case rules.Millis:
		n = int64(c.Time / time.Millisecond)
		if c.Time%time.Millisecond > 0 {
			n++
		}
	case rules.Units:
		n = c.Units
	}
	return min(max(n, 0), maxCost)
}

// Ticket is a request that has passed and not ended. [Ticket.End] ends it and charges its
// cost; [Ticket.Start] has its time charged before. A ticket that is neither started nor ended
// costs nothing, but it keeps its permits for ever if rules have concurrency. A nil *Ticket holds
// nothing, and its End does nothing.
type Ticket struct {
	guard  *Guard
	owed   []owed
	keys   []byte
	leases []semaphore.Lease

	started bool
	metered bool                    // whether a rule finds hot keys by their cost
	start   time.Duration           // see runningTickets.epoch
	metedTo time.Duration           // time up to which usageMeter has added it; 0 if it has not
	waited  time.Duration           // part of that time for which it waited for its client
	client  *waits                  // nil unless a ticket was ever metered
	cancel  context.CancelCauseFunc // ends the handler's context; nil if no rule has limit.cancel
	charged int64                   // milliseconds that are charged
	shard   uint32                  // number of its part of Guard.running
	place   int                     // index in that part, guarded by its lock
}

// owed is one key of a rule that counts costs.
type owed struct {
	rule     *rule
	spec     *limitSpec
	hash     uint64
	from, to int  // the key in the ticket's keys; empty if the rule has one bucket
	free     bool // whether the cost is counted but charged to no limit
	permit   bool // whether the request asked for a permit of its back end
}

// Begin is [Guard.Check] for rules that count what a request costs (bytes, milliseconds or
// units), or that have concurrency. A rule that counts costs allows a request if there is a
// token, and charges the cost at the request's end. Later requests are refused until the cost
// is paid off. A rule with concurrency holds a permit until the request's end. The caller
// must end the ticket once the request is done, whatever its result. The ticket is nil if no
// such rule matches or the request is refused.
//
//	d, ticket := guard.Begin(req)
//	if !d.Allowed {
//		return refused
//	}
//	defer func() { ticket.End(middleware.Cost{Units: rows}) }()
//
// [rules.Decision.Answer] returns the response to send, with its headers. [CollectCost] is for
// handlers that call [AddCost].
//
// Refused requests cost nothing. So a key that is limited to far below its threshold cools
// after some time and becomes hot again, unlike a key whose requests are counted.
func (g *Guard) Begin(req Request) (d rules.Decision, t *Ticket) {
	return d, g.check(&req, true, &d)
}

// reuse returns the ticket to the pool. It drops a ticket that had leases, since a second End
// of that ticket would release the leases of another request.
func (t *Ticket) reuse() {
	const keep = 64 << 10
	held := len(t.leases) > 0
	clear(t.owed)
	t.owed, t.keys, t.leases = t.owed[:0], t.keys[:0], nil
	t.started, t.metered, t.metedTo, t.waited, t.charged = false, false, 0, 0, 0
	t.cancel = nil
	if t.client != nil {
		t.client.clientWait = clientWait{}
	}
	if cap(t.keys) <= keep && !held {
		t.guard.tickets.Put(t)
	}
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

// Counts reports whether a rule charges the request for its cost in this unit. It returns false
// for a nil *Ticket.
func (t *Ticket) Counts(u rules.Unit) bool {
	if t == nil {
		return false
	}
	for i := range t.owed {
		if t.owed[i].rule.Count == u {
			return true
		}
	}
	return false
}

// End releases the permits that the request holds, counts its cost, and charges the cost to
// the limits. It is called once, by any goroutine. The ticket must not be used afterwards.
func (t *Ticket) End(cost Cost) {
	if t == nil || len(t.owed) == 0 && len(t.leases) == 0 {
		return
	}
	defer t.guard.countPanic()
	if t.started {
		cost.Time = t.stop()
	} else if t.metered {
		t.guard.running.usage.addWhole(t, cost.Time)
	}
	if t.cancel != nil {
		t.cancel(nil)
	}
	for _, lease := range t.leases {
		lease.Release()
	}
	if len(t.owed) > 0 {
		t.charge(cost)
		t.recordCost(cost)
	}
	t.reuse()
}

// charge charges a cost to the ticket's keys, except the time that is charged already.
func (t *Ticket) charge(cost Cost) {
	g := t.guard
	now := g.opts.clock()
	before := t.charged
	t.charged = cost.inUnit(rules.Millis)
	for i := range t.owed {
		o := &t.owed[i]
		n := t.charged - before
		if o.rule.Count != rules.Millis {
			n = cost.inUnit(o.rule.Count)
		}
		if n > 0 {
			g.charge(o, now, t.keys[o.from:o.to], n)
		}
	}
}

// recordCost records the whole cost of a request that has been charged.
func (t *Ticket) recordCost(cost Cost) {
	charged := false
	for i := range t.owed {
		o := &t.owed[i]
		if n := cost.inUnit(o.rule.Count); n > 0 {
			o.spec.learnCost(n)
			charged = true
		}
	}
	if charged {
		t.guard.stats.Charged.Add(1)
	}
}

func (g *Guard) charge(o *owed, now time.Duration, key []byte, n int64) {
	ask := limiter.Request{Kind: limiter.Charge, N: n}
	spec := o.spec
	if len(o.rule.Hot) > 0 {
		if !o.rule.costs {
			g.countCost(o, key, n)
		}
		entry := g.hot.Lookup(o.hash, key)
		if entry == nil || spec.limit == nil || entry.Hot.IsExempt() || o.free {
			return
		}
		entry.Payload.charged.Add(n)
		if b := entry.Payload.bucketFor(spec, g.opts.clock); b != nil {
			b.Do(now, ask)
		} else if spec.quota.Load() != nil && spec.lends(g) {
			entry.Payload.stockFor(g, spec, 0, func() string { return string(key[len(o.rule.prefix):]) }).Charge(n)
		}
	} else if h := o.rule.heated[string(key)]; h != nil {
		if b := h.bucketFor(spec, g.opts.clock); b != nil {
			b.Do(now, ask)
		}
	}
	if spec.single != nil {
		spec.single.Do(now, ask)
	}
	if spec.keyed != nil {
		spec.keyed.Do(now, o.hash, key, ask)
	}
}

// countCost counts the cost of a request, unless a reload has given the rule another unit.
func (g *Guard) countCost(o *owed, key []byte, n int64) {
	if set := g.rules.Load(); set != o.rule.set {
		if now := set.byID(o.rule.ID); now != nil && now.Count != o.rule.Count {
			return
		}
	}
	const maxAdd = 1<<32 - 1 // the maximum of one Add
	for left := n; left > 0; left -= maxAdd {
		g.counts.Add(o.hash, key, uint64(min(left, maxAdd)))
	}
}

// spent collects the cost that a handler adds through the context of its request.
type spent struct {
	units atomic.Int64
	outer *spent // the sum of an outer guard, or nil
}

type spentKey struct{}

// withSpent returns a context in which a handler can add to the cost of its request.
func withSpent(ctx context.Context) (context.Context, *spent) {
	outer, _ := ctx.Value(spentKey{}).(*spent)
	sum := &spent{outer: outer}
	return context.WithValue(ctx, spentKey{}, sum), sum
}

// CollectCost returns a context in which a handler can call [AddCost], and a function that
// returns the sum. It is for callers of [Guard.Begin]; [Guard.Handler] collects the cost itself.
//
//	ctx, units := middleware.CollectCost(ctx)
//	defer func() { ticket.End(middleware.Cost{Units: units()}) }()
func CollectCost(ctx context.Context) (context.Context, func() int64) {
	ctx, sum := withSpent(ctx)
	return ctx, sum.units.Load
}

// AddCost adds n units to the cost of the request of this context, for rules that count
// units: rows read, tokens generated, or whatever is scarce. n may be negative. It may be
// called any number of times, by any goroutine, until the handler returns. A request
// without AddCost costs nothing. If no rule counts units, AddCost does nothing.
func AddCost(ctx context.Context, n int64) {
	sum, _ := ctx.Value(spentKey{}).(*spent)
	for ; sum != nil; sum = sum.outer {
		sum.units.Add(min(max(n, -maxCost), maxCost))
	}
}
