package collector

import (
	"bytes"
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Flush sends the counts since the last flush, within the budget, as counts from start on.
// It is for callers that have their own clock, such as a replay, and do not call Run. Calls
// must not overlap.
func (c *Collector) Flush(ctx context.Context, start time.Time) {
	c.beginFlush(start, start)
	c.budget.beginInterval(c.lines)
	c.flush(ctx, c.lines, false)
	c.sendAsked(ctx, c.onUsage.Load())
}

// FlushAt is Flush for callers whose counts are older than their flush, such as the counts of a
// log that is followed. start is the earliest possible time of the counts, and now is stated as
// the time of sending. If nothing was sent for [BeatEvery], a flush without counts is sent too,
// so that receivers see that the instance is alive. FlushAt ignores the budget's pace, since
// start may go back. It needs a collector without a budget (a negative Config.Budget).
func (c *Collector) FlushAt(ctx context.Context, start, now time.Time) {
	c.runs = true
	c.beginFlush(start, now)
	c.budget.beginInterval(c.lines)
	c.flush(ctx, c.lines, now.Sub(instant(c.lastSend)) >= BeatEvery-base.FlushInterval)
	c.sendOrigins(ctx)
}

// Close closes the sink. It is for callers of Flush and FlushAt; Run closes the sink itself.
func (c *Collector) Close() error { return c.sink.Close() }

// beginFlush sets the start of the counts to be taken, and the time.
func (c *Collector) beginFlush(start, now time.Time) {
	c.start, c.now = start.UnixNano(), now.UnixNano()
	c.applyRules()
	c.applySteering()
}

// flush flushes all keys. limit bounds the lines that are spent since the last cut, including
// those of this flush. If beat is set, or the last packets had counts, it sends a packet even
// without counts. The packet's number lets the receiver notice that the last one was lost.
func (c *Collector) flush(ctx context.Context, limit int, beat bool) {
	c.flushes++
	c.budget.limit = limit
	c.budget.reset()
	c.budget.must = c.groupLines()
	for i := range c.shards {
		s := &c.shards[i]
		c.takeCounts(s)
		c.weigh(s)
	}
	c.remindAccounts()
	was := c.factor
	sel := c.choose()
	unheld := c.held == 1
	c.calm = unheld
	c.held, c.candidates = 1, 0
	c.counts, c.parts = c.counts[:0], c.parts[:0]
	for i := range c.shards {
		s := &c.shards[i]
		t := s.table.Load()
		s.each(func(slot int, k *note) {
			counted := k.delta > 0
			if c.awaitsRules(k) || k.flags == 0 && !sel.sends(k) {
				c.holdBack(s, t, slot)
			} else {
				c.emit(s, t, slot)
			}
			if counted && (k.exempt() || c.factor != was) {
				c.pace(s, slot)
				c.setUrgentCount(s, t, slot)
			}
		})
	}
	c.takeGroups()
	c.repeatAccounts()
	c.budget.spent += len(c.counts) + len(c.parts) + len(c.heldBack)
	if unsent := c.unsentBound(); len(c.counts)+len(c.parts)+len(c.heldBack) > 0 || unsent > 0 || c.held > 1 || !unheld || c.sentCounts || beat {
		c.send(ctx, unsent)
	}
	c.local.advance(c)
	for i := range c.shards {
		c.compact(&c.shards[i])
	}
	c.publishFigures()
}

// takeCounts takes the counts of a shard. It also sets the urgent counts of keys that cannot
// be candidates, while their slots are in the processor's cache.
func (c *Collector) takeCounts(s *shard) {
	t := s.table.Load()
	t.drain(&t.dirty, func(slot int, n uint64) {
		c.absorb(s, t, slot, n)
		if !s.notes[slot].exempt() {
			c.pace(s, slot)
			c.setUrgentCount(s, t, slot)
		}
	})
}

// weigh adds the unsent counts of a shard's keys to the budget's histogram, and drops
// counts that have been held back for longer than the window.
func (c *Collector) weigh(s *shard) {
	s.each(func(slot int, k *note) {
		c.age(k)
		if k.total() == 0 {
			s.unsent.remove(slot)
		} else if c.budget.lines >= 0 {
			c.budget.add(k)
		}
	})
}

// choose decides which unsent counts fit into the budget.
func (c *Collector) choose() keySelection {
	b := &c.budget
	if b.lines < 0 {
		return keySelection{factor: 1}
	}
	factor := b.factor()
	if factor > c.factor {
		c.raised++
	}
	if c.factor = factor; factor > 1 {
		for i := range c.shards {
			c.shards[i].each(func(_ int, k *note) {
				if k.flags == 0 && k.load >= 1 && k.load < factor {
					b.others.add(k.total(), k.lines())
				}
			})
		}
	}
	return b.selectKeys(factor)
}

// emit adds a key's counts to the counts to be sent.
func (c *Collector) emit(s *shard, t *keyTable, slot int) {
	k := &s.notes[slot]
	// If the bytes are not a key's, the sink reports an unknown rule.
	rule, text, _ := bytes.Cut(t.key(&t.slots[slot]), []byte{' '})
	a, isNew := c.accountOf(s, slot)
	if k.held > 0 {
		part := Count{Rule: rule, Text: text, N: int64(k.held), Start: instant(c.rounded(k))}
		if !isNew { // a new account does not include earlier counts
			part.Account = a.addCounts(k.held)
		}
		c.parts = append(c.parts, part)
	}
	if k.delta > 0 {
		c.counts = append(c.counts, Count{Rule: rule, Text: text, N: int64(k.delta), Account: a.addCounts(k.delta)})
	}
	c.recordAccount(s, slot, a)
	if c.candidate(k) {
		c.candidates++
	}
	c.unsent -= int64(k.total())
	k.held, k.delta, k.sent = 0, 0, c.start
	s.unsent.remove(slot)
}

// rounded returns the origin of a key's held part, rounded down by at most an eighth of its
// age. Each origin needs its own packets, and in a window of an hour each line could have a
// different one. The result is not before the key's last send, since the times of a key's
// parts must not overlap.
func (c *Collector) rounded(k *note) int64 {
	eighths := (c.start - k.origin) / (8 * int64(base.FlushInterval))
	if eighths < 2 {
		return k.origin
	}
	step := int64(base.FlushInterval) << (bits.Len64(uint64(eighths)) - 1)
	return min(k.origin, max(k.sent, base.FloorDiv(k.origin, step)*step)) // sent is after origin if the clock was set back
}

// unsentBound returns an upper bound on the counts of any one key dropped since the last
// flush.
func (c *Collector) unsentBound() int64 {
	c.lost = c.full.Load() + c.stats.Load().Dropped.TooLong
	shed := int64(0)
	for i := range c.shards {
		shed = max(shed, c.shards[i].shed) // a key is in one shard
	}
	return c.lost - c.statedLost + shed
}

// send sends the counts and the flush's statements.
func (c *Collector) send(ctx context.Context, unsent int64) {
	counts := c.counts
	if len(c.parts) > 0 {
		slices.SortFunc(c.parts, func(a, b Count) int { return a.Start.Compare(b.Start) })
		c.parts = append(c.parts, c.counts...)
		counts = c.parts
	}
	f := Flush{
		Start: instant(c.start), Held: c.held, Unsent: unsent, Aged: c.aged - c.statedAged,
		Opened: c.opened, Shed: c.shedAccounts, HeldBack: c.heldBack,
	}
	if c.runs {
		f.Now = instant(c.now)
	}
	c.statedLost, c.statedAged, c.heldBack = c.lost, c.aged, c.heldBack[:0]
	for i := range c.shards {
		c.shards[i].shed = 0
	}
	sum := int64(0)
	for i := range counts {
		sum += counts[i].N
	}
	c.stats.Change(func(s *Stats) { s.Flushes++ })
	c.lastSend, c.sentCounts = c.now, sum > 0
	c.recordSent(c.sink.Send(ctx, f, counts), sum)
}
