package middleware

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Cost is what a request turned out to cost. A rule takes of it what it counts.
type Cost struct {
	Bytes int64         // of the response's body
	Units int64         // as the handler reckons
	Time  time.Duration // that the handler took
}

// maxCost bounds what one request can cost, so that no sum overflows: 1 TiB, or
// as many units or milliseconds.
const maxCost = 1 << 40

// in is the cost in a rule's unit: whole milliseconds rounded up.
func (c *Cost) in(u hotparam.Unit) int64 {
	n := int64(0)
	switch u {
	case hotparam.Requests:
		n = 1
	case hotparam.Bytes:
		n = c.Bytes
	case hotparam.Millis:
		n = int64(c.Time / time.Millisecond)
		if c.Time%time.Millisecond > 0 {
			n++
		}
	case hotparam.Units:
		n = c.Units
	}
	return min(max(n, 0), maxCost)
}

// Ticket is a request that passed, and whose cost is to be told by [Ticket.End].
// One that is never ended costs nothing. A nil *Ticket costs nothing either.
type Ticket struct {
	guard *Guard
	owed  []owed
	keys  []byte
}

// owed is one key of a rule that counts costs.
type owed struct {
	rule     *rule
	terms    *terms
	hash     uint64
	from, to int // the key in the ticket's keys; empty: the rule has one bucket
}

// Begin is [Guard.Check] where rules count what a request costs: bytes,
// milliseconds or units. Such a rule lets a request pass while there is a token,
// and takes what it cost at the end, so that the next ones wait until that has
// been earned. The ticket, nil if no such rule matches or the request is refused,
// is to be ended once the request is done, whatever became of it:
//
//	d, ticket := guard.Begin(req)
//	if !d.Allowed {
//		return refused
//	}
//	defer func() { ticket.End(middleware.Cost{Units: rows}) }()
//
// A request that was refused has cost nothing: unlike a key of which requests are
// counted, one that is held far below its threshold cools in time, and comes back.
func (g *Guard) Begin(req Request) (d hotparam.Decision, t *Ticket) {
	defer g.failOpen(&d)
	r := g.routeOf(&req)
	if !r.costs {
		if r.plain == nil || !g.plain(r.plain, &req, &d) {
			g.check(&req, r, nil, &d)
		}
		return d, nil
	}
	ticket := g.tickets.Get().(*Ticket)
	g.check(&req, r, ticket, &d)
	return d, ticket.unless(!d.Allowed)
}

// unless is the ticket, if there is something to tell by it.
func (t *Ticket) unless(refused bool) *Ticket {
	if refused || len(t.owed) == 0 {
		t.reuse()
		return nil
	}
	return t
}

func (t *Ticket) reuse() {
	const keep = 64 << 10
	clear(t.owed)
	t.owed, t.keys = t.owed[:0], t.keys[:0]
	if cap(t.keys) <= keep {
		t.guard.tickets.Put(t)
	}
}

// owe notes that the key's cost is to be told.
func (s *scratch) owe(c *candidate, t *terms, hash uint64, key []byte) {
	if s.ticket == nil || c.Count == hotparam.Requests {
		return
	}
	from := len(s.ticket.keys)
	s.ticket.keys = append(s.ticket.keys, key...)
	s.ticket.owed = append(s.ticket.owed, owed{rule: c.rule, terms: t, hash: hash, from: from, to: len(s.ticket.keys)})
}

// counts tells whether some rule wants the cost in this unit.
func (t *Ticket) counts(u hotparam.Unit) bool {
	for i := range t.owed {
		if t.owed[i].rule.Count == u {
			return true
		}
	}
	return false
}

// End counts what the request cost, and charges it to the limits. It is called
// once, by any goroutine; the ticket must not be used afterwards.
func (t *Ticket) End(cost Cost) {
	if t == nil || len(t.owed) == 0 {
		return
	}
	g := t.guard
	defer func() {
		if recover() != nil {
			g.panics.Add(1)
		}
	}()
	now := g.opts.clock()
	charged := false
	for i := range t.owed {
		o := &t.owed[i]
		if n := cost.in(o.rule.Count); n > 0 {
			g.charge(o, now, t.keys[o.from:o.to], n)
			charged = true
		}
	}
	if charged {
		g.charged.Add(1)
	}
	t.reuse()
}

func (g *Guard) charge(o *owed, now time.Duration, key []byte, n int64) {
	switch t := o.terms; {
	case t.single != nil:
		t.single.Charge(now, n)
	case t.keyed != nil:
		t.keyed.Charge(now, o.hash, key, n)
	default:
		const most = 1<<32 - 1 // of one Add
		for left := n; left > 0; left -= most {
			g.counts.Add(o.hash, key, uint64(min(left, most)))
		}
		if entry := g.hot.Lookup(o.hash, key); entry != nil {
			if bucket := entry.Payload.bucketFor(t); bucket != nil {
				bucket.Charge(now, n)
			}
		}
	}
}

// spent is what a handler says that its request costs, by way of the context.
type spent struct {
	units atomic.Int64
	outer *spent // of a guard further out; nil: there is none
}

type spentKey struct{}

// withSpent gives the handler of a request a place to say its cost.
func withSpent(ctx context.Context) (context.Context, *spent) {
	outer, _ := ctx.Value(spentKey{}).(*spent)
	own := &spent{outer: outer}
	return context.WithValue(ctx, spentKey{}, own), own
}

// AddCost adds n units to what the request of this context costs, by rules that
// count units: rows read, tokens generated, whatever it is that is scarce. It may
// be called any number of times, by any goroutine of the request until its handler
// returns; n may be negative. A request of which nothing is said costs nothing.
// Where no rule asks for it AddCost does nothing.
func AddCost(ctx context.Context, n int64) {
	own, _ := ctx.Value(spentKey{}).(*spent)
	for ; own != nil; own = own.outer {
		own.units.Add(min(max(n, -maxCost), maxCost))
	}
}
