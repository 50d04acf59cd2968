package middleware

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Start begins to measure the time of the request. Rules with count: ms then count it every
// 100 ms while the request runs, and charge it to their limits. At the end they charge only the
// rest, and [Cost].Time is ignored. Without Start they charge Cost.Time at the end. Start is for
// code that runs the handler itself, just before it does. A started ticket costs time until End,
// which therefore has to be called even if the handler panics. Start of a nil *Ticket does
// nothing.
func (t *Ticket) Start() {
	if !t.Counts(rules.Millis) || t.started {
		return
	}
	r := &t.guard.running
	t.started, t.start = true, time.Since(r.epoch)
	r.add(&t.place)
}

// StartStream is Start for a request that lasts for as long as its client wants, such as a stream of
// messages. Its time says nothing of what it costs, so rules with hot.cost leave it out.
func (t *Ticket) StartStream() {
	if t != nil {
		t.metered = false
	}
	t.Start()
}

// elapsed returns the time since Start.
func (t *Ticket) elapsed() time.Duration { return time.Since(t.guard.running.epoch) - t.start }

// stop returns the time since Start. Afterwards the ticket is no longer charged while it runs.
func (t *Ticket) stop() time.Duration { return t.guard.running.remove(&t.place) - t.start }

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
		t.addWhole(&t.guard.running.usage, cost.Time)
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

// chargeRunning charges the ticket while it runs. The caller keeps it from being ended.
func (t *Ticket) chargeRunning(usage *usageMeter) {
	t.chargeElapsed()
	t.addRunning(usage)
	t.cancelIfHeld()
}

// chargeElapsed charges the time since the last charge, if it is an interval. Both times are
// since Start and rounded up, as at the end.
func (t *Ticket) chargeElapsed() {
	defer t.guard.countPanic()
	if cost := (Cost{Time: t.elapsed()}); cost.inUnit(rules.Millis)-t.charged >= chargeEvery.Milliseconds() {
		t.charge(cost)
	}
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
			entry.Payload.stockFor(g.fleet, spec, 0, func() string { return string(key[len(o.rule.prefix):]) }).Charge(n)
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
