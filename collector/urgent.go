package collector

import (
	"context"
	"time"
)

// DefaultUrgent is the fast pace by default.
const DefaultUrgent = 5 * time.Millisecond

// flushUrgent takes the counts of the keys that have reached their marks, and sends
// those at the fast pace unless the sink is patient. Like all flushes it leaves
// nothing that is of before the cut behind: what is urgent after a cut comes after
// the flush at the cut.
func (c *Collector) flushUrgent(ctx context.Context) {
	c.urgentAt = c.now
	c.counts, c.parts = c.counts[:0], c.parts[:0]
	for i := range c.shards {
		s := &c.shards[i]
		t := s.table.Load()
		t.drain(&t.urgent, func(at int, n uint64) {
			c.absorb(s, t, at, n)
			k := &s.notes[at]
			c.age(k)
			fast := c.pace(s, at) && !c.patient
			if fast && !c.budget.spend(k.lines()) {
				t.slots[at].mark.Store(never) // until the next flush of all
				return
			}
			if fast {
				c.emit(s, t, at)
			}
			c.mark(s, t, at)
		})
	}
	if len(c.counts) > 0 {
		c.sent.urgent.Add(1)
		c.send(ctx, c.unsentBound())
	}
	c.publishFigures()
}

// firstMark is the count from which on a key that was never looked at is urgent:
// the lowest that makes a candidate of any rule.
func (c *Collector) firstMark() uint64 {
	if c.urgent <= 0 {
		return never
	}
	return toCount(c.profiles.lowest)
}
