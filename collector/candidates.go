package collector

import (
	"bytes"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// fastFor is the time that a candidate is flushed at the fast pace without becoming hot.
const fastFor = time.Second

// absorb records n counts that were taken from a slot.
func (c *Collector) absorb(s *shard, t *keyTable, slot int, n uint64) {
	k := &s.notes[slot]
	if k.profile == unseen {
		c.classify(s, t, slot)
	}
	k.delta += n
	s.unsent.add(slot)
	c.unsent += int64(n)
	k.flush, k.lastCount = c.flushes, uint32(min(n, 1<<32-1))
	p, recents := &c.profiles.all[k.profile], c.recents(s, slot)
	p.taken += int64(n)
	k.load = float32(p.count(recents, n, c.start))
	if k.local != 0 || c.candidate(k) {
		c.local.count(c, s, slot, n)
	}
}

func (c *Collector) recents(s *shard, slot int) []recent {
	levels := c.profiles.levels
	return s.recents[slot*levels : (slot+1)*levels]
}

// classify sets the profile and the flags of a key when its first count is taken.
func (c *Collector) classify(s *shard, t *keyTable, slot int) {
	k, key, hash := &s.notes[slot], t.key(&t.slots[slot]), t.slots[slot].hash
	rule, text, _ := bytes.Cut(key, []byte{' '})
	k.profile = c.profiles.indexOf(rule, text)
	k.sent = s.since
	k.flags |= c.steered.flags(hash, key)
}

// candidate reports whether a key is a candidate, so that its counts are sent in full at each
// flush. A key is a candidate if it is hot or suspect, or if its count at this instance is so high
// that it may be hot over all instances.
func (c *Collector) candidate(k *note) bool {
	return k.flags != 0 || k.load >= c.factor
}

// pace updates whether a key is flushed at the fast pace, and returns it. A candidate that is
// not hot is flushed fast for at most fastFor, and once more each time its load has risen by one.
func (c *Collector) pace(s *shard, slot int) (fast bool) {
	k := &s.notes[slot]
	switch {
	case c.urgent <= 0 || k.flags&isHot != 0:
		k.until, k.level = 0, 0
		return false
	case !c.candidate(k):
		c.endFastPace(s, slot)
		return false
	case k.until > c.now:
		k.until = min(k.until, c.now+int64(fastFor)) // the clock may have been set back
		return true
	}
	p := &c.profiles.all[k.profile]
	load := float32(p.sliding(c.recents(s, slot), c.start))
	if k.until == 0 && load < k.level-1 {
		k.level = load // so that a rise from this load counts
	}
	if k.until == 0 && (k.level == 0 || load >= k.level+1) {
		k.until = c.now + int64(fastFor)
		return true
	}
	if k.until != 0 {
		k.until, k.level = 0, max(k.level, load, 1e-9) // a level of 0 would mean that it has had no fast pace
	}
	return false
}

// endFastPace ends the fast pace of a key that is no longer a candidate. For a key at a steady
// rate, the bound of [profile.count] doubles within each stretch, which is one window long (see
// [recent]). So a key of half a mark or more becomes a candidate from time to time without having
// risen, and its level is kept.
func (c *Collector) endFastPace(s *shard, slot int) {
	k := &s.notes[slot]
	if k.until == 0 && k.level == 0 {
		return
	}
	load := float32(c.profiles.all[k.profile].sliding(c.recents(s, slot), c.start))
	if k.until != 0 {
		k.until, k.level = 0, max(k.level, load)
	}
	if load < 0.5 {
		k.level = 0
	}
}

// setUrgentCount sets the count at which a slot's key is urgent.
func (c *Collector) setUrgentCount(s *shard, t *keyTable, slot int) {
	k := &s.notes[slot]
	count := uint64(never)
	if c.urgent > 0 && k.flags&isHot == 0 {
		p, recents := &c.profiles.all[k.profile], c.recents(s, slot)
		switch {
		case k.until != 0:
			count = 1
		case c.candidate(k):
			count = p.missingSliding(recents, float64(k.level)+1, c.start)
		default:
			count = p.missing(recents, float64(c.factor))
		}
	}
	x := &t.slots[slot]
	if x.urgentCount.Load() == count {
		return
	}
	x.urgentCount.Store(count)
	if count != never && x.state.Load()&countMask >= count { // an add after the counts were taken saw the old one
		t.urgent.set(uint64(slot))
		base.Notify(c.hurry)
	}
}
