package collector

import (
	"context"
	"time"
)

// DefaultUrgent is the default of Config.Urgent.
const DefaultUrgent = 5 * time.Millisecond

// flushUrgent takes the counts of the keys that have reached their urgent counts. Unless the
// sink is patient, it sends the counts of keys at the fast pace. An urgent flush after a cut comes
// after the flush at that cut, so that it takes no counts from before the cut.
func (c *Collector) flushUrgent(ctx context.Context) {
	c.urgentAt = c.now
	c.counts, c.parts = c.counts[:0], c.parts[:0]
	for i := range c.shards {
		s := &c.shards[i]
		t := s.table.Load()
		t.drain(&t.urgent, func(slot int, n uint64) {
			c.absorb(s, t, slot, n)
			k := &s.notes[slot]
			c.age(k)
			fast := c.pace(s, slot) && !c.can.Patient && !c.awaitsRules(k)
			if fast && !c.budget.spend(k.lines()) {
				t.slots[slot].urgentCount.Store(never) // until the next flush of all keys
				return
			}
			if fast {
				c.emit(s, t, slot)
			}
			c.setUrgentCount(s, t, slot)
		})
	}
	if len(c.counts) > 0 {
		c.stats.Change(func(s *Stats) { s.Urgent++ })
		c.send(ctx, c.unsentBound())
	}
	c.publishFigures()
}

// firstUrgentCount returns the count at which a new key is urgent: the least count that can make
// it a candidate by any rule.
func (c *Collector) firstUrgentCount() uint64 {
	if c.urgent <= 0 {
		return never
	}
	return toCount(c.profiles.lowest)
}
