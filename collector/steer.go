package collector

import (
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// maxSteered bounds the number of hot keys and suspects that a collector uses.
const maxSteered = 4096

// steering is the aggregator's knowledge about the fleet.
type steering struct {
	instances int
	keys      map[uint64][]steered // by hash
}

type steered struct {
	member string
	flags  flags
}

// Steer sets the aggregator's knowledge about the fleet, and the keys that are hot now. Hot
// keys and suspects are sent in full at each flush, and hot keys are no longer urgent. The
// number of instances determines which keys are candidates. Steer uses the first 4,096 keys,
// hot keys before suspects. It keeps neither argument, takes effect at the next flush, and is
// safe for concurrent use.
func (c *Collector) Steer(f published.Fleet, hot []rules.Key) {
	next := &steering{instances: max(1, f.Instances), keys: make(map[uint64][]steered, len(hot)+len(f.Suspects))}
	left := maxSteered
	add := func(keys []rules.Key, flag flags) {
		for _, key := range keys[:min(left, len(keys))] {
			member := key.String()
			hash := rules.Hash([]byte(member))
			next.keys[hash] = append(next.keys[hash], steered{member, flag})
			left--
		}
	}
	add(hot, isHot)
	add(f.Suspects, isSuspect)
	c.steering.Store(next)
}

// flags returns the flags of a key.
func (s *steering) flags(hash uint64, key []byte) (f flags) {
	for _, k := range s.keys[hash] {
		if k.member == string(key) {
			f |= k.flags
		}
	}
	return f
}

// applySteering updates the slots to the last Steer.
func (c *Collector) applySteering() {
	last, next := c.steered, c.steering.Load()
	if next == last {
		return
	}
	c.steered, c.reminded = next, 0
	for hash, keys := range last.keys {
		for i := range keys {
			c.steerKey(hash, keys[i].member)
		}
	}
	for hash, keys := range next.keys {
		for i := range keys {
			c.steerKey(hash, keys[i].member)
		}
	}
	if next.instances != last.instances {
		c.profiles.setInstances(next.instances)
		c.resetUrgentCounts()
	}
}

// steerKey sets the flags of a key. A key without taken counts gets its flags when it is
// classified.
func (c *Collector) steerKey(hash uint64, member string) {
	s := c.shardOf(hash)
	t := s.table.Load()
	slot := t.findSlot(hash, []byte(member))
	if slot < 0 || s.notes[slot].profile == unseen {
		return
	}
	s.notes[slot].flags = c.steered.flags(hash, t.key(&t.slots[slot]))
	c.pace(s, slot)
	c.setUrgentCount(s, t, slot)
}

// resetUrgentCounts updates the load and the urgent count of every key after the candidates' marks
// have changed.
func (c *Collector) resetUrgentCounts() {
	first := c.firstUrgentCount()
	for i := range c.shards {
		s := &c.shards[i]
		t := s.table.Load()
		for slot := range s.notes {
			k := &s.notes[slot]
			if k.profile == unseen {
				t.slots[slot].urgentCount.Store(first)
				continue
			}
			k.load = float32(c.profiles.all[k.profile].load(c.recents(s, slot)))
			k.level, k.until = 0, 0
			c.setUrgentCount(s, t, slot)
		}
	}
}
