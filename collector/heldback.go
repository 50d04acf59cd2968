package collector

import (
	"bytes"
	"math"
)

// age drops counts that were held back for longer than the longest of the rule's windows,
// since no window contains them any more.
func (c *Collector) age(k *note) {
	if k.held == 0 {
		return
	}
	if k.origin >= c.start { // by an early flush, or the clock was set back
		if c.profiles.all[k.profile].groups != nil {
			k.origin = c.start - 1 // its group already counts it, so it must not be added to delta
			return
		}
		k.held, k.delta = 0, k.total()
		return
	}
	if c.start-k.origin < c.profiles.all[k.profile].keep {
		return
	}
	c.unsent -= int64(k.held)
	c.aged += int64(k.held)
	k.held, k.sent = 0, c.start
}

// holdBack leaves a key's counts to a later flush.
func (c *Collector) holdBack(s *shard, t *keyTable, slot int) {
	k := &s.notes[slot]
	c.holdBackInGroup(k, t, slot, k.delta)
	if k.held == 0 {
		k.origin = c.start
	}
	k.held, k.delta = k.total(), 0
	c.held = max(c.held, int64(min(k.held, math.MaxInt64-1))+1)
}

// holdBackInGroup adds n counts that this flush does not send to the counts that the key's group
// holds back.
func (c *Collector) holdBackInGroup(k *note, t *keyTable, slot int, n uint64) {
	if g := c.profiles.all[k.profile].groups; g != nil && n > 0 {
		_, text, _ := bytes.Cut(t.key(&t.slots[slot]), []byte{' '})
		g.holdBack(text, int64(n))
	}
}

// takeGroups takes the held-back counts of groups, within the lines that are left.
func (c *Collector) takeGroups() {
	c.heldBack = c.heldBack[:0]
	for _, g := range c.profiles.groups {
		lines := math.MaxInt
		if c.budget.lines >= 0 {
			lines = c.budget.linesLeft() - len(c.counts) - len(c.parts) - len(c.heldBack)
		}
		before := len(c.heldBack)
		c.heldBack = g.appendHeldBack(c.heldBack, lines)
		g.lastLines = len(c.heldBack) - before
	}
}

// groupLines returns the number of lines that are reserved for the held-back counts of groups.
func (c *Collector) groupLines() (lines int) {
	for _, g := range c.profiles.groups {
		lines += max(leastGroups, g.lastLines)
	}
	return lines
}
