package collector

import (
	"bytes"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// maxLocalKeys bounds the number of keys that are counted exactly, by pane. Further candidates
// can only be found hot by the aggregator.
const maxLocalKeys = 4096

// localDetector counts candidates exactly, by the panes of their absolute thresholds, and
// finds the keys that are hot by the count of this instance alone.
type localDetector struct {
	keys []localKey // by number - 1
	free []uint16
	hot  int
}

// localKey is a key that is counted exactly.
type localKey struct {
	shard   *shard
	slot    int
	profile uint32
	counts  []paneCounts // by level; only those of absolute thresholds are used
	hot     bool
	since   int64
	level   int   // the threshold that was reached
	below   int64 // when the count fell below all exits, or 0 if it is not below
}

// OnLocal sets f, which is called with hot=true when a key reaches an absolute threshold by
// the count of this instance alone. f is called with hot=false when the key cools: it has been
// hot for the threshold's Hold, and its counts have been below the exit for the CoolDown.
// Low is the count of this instance; High is [published.Unknown]. f is called by the
// goroutine that flushes and must not block. A nil f disables it. OnLocal is safe for
// concurrent use.
func (c *Collector) OnLocal(f func(h published.Hot, hot bool)) {
	c.onLocal.Store(&f)
}

// count adds n counts of c.start that were taken from a slot.
func (l *localDetector) count(c *Collector, s *shard, slot int, n uint64) {
	k := &s.notes[slot]
	if k.local == 0 && !l.beginKey(c, s, slot, n) {
		return
	}
	x := &l.keys[k.local-1]
	levels := c.profiles.all[x.profile].levels
	for i := range levels {
		level, p := &levels[i], &x.counts[i]
		if level.Kind != rules.FixedRate {
			continue
		}
		p.add(level.window.Index(instant(c.start)), n)
		if p.sum() >= level.n {
			x.below = 0
			if !x.hot {
				x.hot, x.since, x.level = true, c.now, i
				l.hot++
				l.report(c, x, true)
			}
		}
	}
}

// beginKey begins to count a key, and reports whether it did. Earlier counts of the present
// stretch are within one window, so they are added to the stretch's first pane.
func (l *localDetector) beginKey(c *Collector, s *shard, slot int, n uint64) bool {
	k := &s.notes[slot]
	p := &c.profiles.all[k.profile]
	if !p.absolute || len(l.free) == 0 && len(l.keys) == maxLocalKeys {
		return false
	}
	if last := len(l.free) - 1; last >= 0 {
		k.local, l.free = l.free[last], l.free[:last]
	} else {
		l.keys = append(l.keys, localKey{})
		k.local = uint16(len(l.keys))
	}
	x := &l.keys[k.local-1]
	*x = localKey{shard: s, slot: slot, profile: k.profile, counts: make([]paneCounts, c.profiles.levels)}
	for i := range p.levels {
		x.counts[i] = p.levels[i].countsSince(&c.recents(s, slot)[i], n)
	}
	return true
}

// countsSince returns the counts of the present stretch, except n of them, in its first pane.
func (l *level) countsSince(recent *recent, n uint64) paneCounts {
	p := newPaneCounts(int64(l.window.Panes))
	p.add(l.window.Index(instant(recent.stretch*int64(l.Rate.Per))), recent.cur-min(n, recent.cur))
	return p
}

// release stops counting a key.
func (l *localDetector) release(c *Collector, number uint16) {
	if number == 0 {
		return
	}
	x := &l.keys[number-1]
	if x.hot {
		l.cool(c, x)
	}
	x.shard = nil
	l.free = append(l.free, number)
}

// recordMove records the new slot of a key.
func (l *localDetector) recordMove(number uint16, s *shard, slot int) {
	x := &l.keys[number-1]
	x.shard, x.slot = s, slot
}

// advance moves the windows to the present. Keys cool, and keys without counts in any window
// are no longer counted.
func (l *localDetector) advance(c *Collector) {
	for i := range l.keys {
		x := &l.keys[i]
		if x.shard == nil {
			continue
		}
		silent, below := x.compareWithExits(c)
		switch {
		case !below:
			x.below = 0
		case x.below == 0:
			x.below = c.now
		}
		if x.hot && below {
			t := c.profiles.all[x.profile].levels[x.level]
			if c.now-x.since < int64(t.Hold) || c.now-x.below < int64(t.CoolDown) {
				continue
			}
			l.cool(c, x)
		}
		if silent && !x.hot {
			k := &x.shard.notes[x.slot]
			k.local, k.until, k.level = 0, 0, 0
			c.setUrgentCount(x.shard, x.shard.table.Load(), x.slot) // so that its next burst is as urgent as the first
			l.release(c, uint16(i+1))
		}
	}
}

// compareWithExits reports whether no window has counts, and whether the counts of all windows,
// present and last, are below the exits. An incomplete window's count is not known to be below.
func (x *localKey) compareWithExits(c *Collector) (silent, below bool) {
	silent, below = true, true
	levels := c.profiles.all[x.profile].levels
	for j := range levels {
		if l := &levels[j]; l.Kind == rules.FixedRate {
			p := &x.counts[j]
			p.advance(l.window.Index(instant(c.now)))
			sum := p.sum()
			silent = silent && sum == 0
			below = below && max(sum, p.previousSum()) < l.exit && c.now >= p.complete
		}
	}
	return silent, below
}

func (l *localDetector) cool(c *Collector, x *localKey) {
	x.hot = false
	l.hot--
	l.report(c, x, false)
}

// report calls the function set by OnLocal with a key that became hot or cooled.
func (l *localDetector) report(c *Collector, x *localKey, hot bool) {
	f := c.onLocal.Load()
	if f == nil || *f == nil {
		return
	}
	t := x.shard.table.Load()
	p := &c.profiles.all[x.profile]
	level := &p.levels[x.level]
	_, text, _ := bytes.Cut(t.key(&t.slots[x.slot]), []byte{' '})
	low := x.counts[x.level].sum()
	h := published.Hot{
		Key:   rules.Key{Rule: p.rule.ID, Text: string(text)},
		Cause: level.cause(p.rule.Count),
		Low:   low,
		High:  published.Unknown,
		Rate:  float64(low) / level.Rate.Per.Seconds(),
		Since: instant(x.since),
		Local: true,
	}
	h.Limit, h.Burst, h.Mode = p.limit.Published()
	if !hot {
		h.Until = instant(c.now)
	}
	(*f)(h, hot)
}
