package collector

import (
	"bytes"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// rulesInForce are rules with the data that the collector derives from them.
type rulesInForce struct {
	rules    *rules.Rules
	before   []*rules.Rules // rules of earlier Reloads that were never in force
	windows  []rules.Window
	profiles *profiles
}

func newRulesInForce(rules *rules.Rules, can Capabilities) *rulesInForce {
	rules = rules.OfKeys()
	next := &rulesInForce{rules: rules, profiles: newProfiles(rules, can.Groups)}
	if rules != nil {
		next.windows = rules.Windows()
	}
	return next
}

// Reload replaces the rules while keys are counted; nil has the same effect as in [Config].
// rules must not change afterwards. Keys of new rules may be added as soon as Reload has
// returned. The new rules are in force from the next flush on, which Run makes at once.
//
// No count is lost or sent twice. Counts that are held back are sent later, including those of
// removed rules. They are dropped only if a rule counts in another unit (in [Stats].Aged), since
// they would be added to counts in the new one. The state of a key carries over by the rule's
// id, for each window whose length has not changed: whether it is a candidate, its exact count,
// and whether it is hot here alone. Sums continue.
//
// Reload takes no lock that Add needs, and is safe for concurrent use. If it is called several
// times before a flush, that flush puts the last rules in force.
func (c *Collector) Reload(rules *rules.Rules) {
	next := newRulesInForce(rules, c.can)
	for {
		last := c.next.Load()
		if next.before = nil; last != nil {
			next.before = append(slices.Clone(last.before), last.rules)
			next.before = next.before[max(0, len(next.before)-maxSkipped):]
		}
		if c.next.CompareAndSwap(last, next) {
			break
		}
	}
	base.Notify(c.reloaded)
}

// maxSkipped bounds the number of rules never in force that are passed to the sink.
const maxSkipped = 64

// awaitsRules reports whether a key may belong to a rule that Reload has added since this flush
// began. Its counts wait for the next flush, whose rules and sink include it.
func (c *Collector) awaitsRules(k *note) bool {
	return (k.profile == unknown || k.profile == gone) && c.next.Load() != nil
}

// applyRules puts the rules of the last Reload in force. It is called between flushes.
func (c *Collector) applyRules() {
	if c.next.Load() == nil {
		return
	}
	next, last := c.next.Swap(nil), c.profiles
	c.publishCounted()
	c.local.releaseUnruled(c, next.profiles)
	for _, g := range next.profiles.groups {
		for _, old := range last.groups {
			if old.rule == g.rule {
				g.adopt(old)
			}
		}
	}
	c.profiles, c.windows = next.profiles, next.windows
	c.profiles.setInstances(c.steered.instances)
	other := c.setCounted(newRuleCounts(next.rules, next.profiles))
	for _, rules := range next.before { // keys of these may have been added
		c.sink.SetRules(rules)
	}
	c.sink.SetRules(next.rules)
	for i := range c.shards {
		c.reclassify(&c.shards[i], last, other)
	}
	if levels := c.profiles.levels; levels != last.levels {
		c.spare.recents = make([]recent, len(c.spare.notes)*levels)
	}
	c.local.changeRules(c, last)
	c.publishCounted()
}

// reclassify updates the records of a shard's keys to the present rules. otherUnit has the ids
// of rules that count in another unit than before.
func (c *Collector) reclassify(s *shard, last *profiles, otherUnit map[string]bool) {
	t, first := s.table.Load(), c.firstUrgentCount()
	was := s.recents
	s.recents = make([]recent, len(s.notes)*c.profiles.levels)
	for slot := range s.notes {
		k := &s.notes[slot]
		if k.profile == unseen {
			t.slots[slot].urgentCount.Store(first)
			continue
		}
		old := &last.all[k.profile]
		rule, text, _ := bytes.Cut(t.key(&t.slots[slot]), []byte{' '})
		wasUnknown := k.profile == unknown
		if k.profile = c.profiles.indexOf(rule, text); k.profile == unknown && !wasUnknown {
			k.profile = gone
		}
		p, recents := &c.profiles.all[k.profile], c.recents(s, slot)
		switch {
		case wasUnknown: // not in any rule's sums so far
			p.taken += int64(k.total())
			p.count(recents, k.total(), c.start)
		case otherUnit[string(rule)]:
			c.dropUnsent(s, slot)
		default:
			p.carryRecents(recents, old, was[slot*last.levels:])
			if p.groups != nil && old.groups == nil {
				c.holdBackInGroup(k, t, slot, k.held) // which the receiver does not know of yet
			}
		}
		k.load = float32(p.load(recents))
		k.level, k.until = 0, 0
		c.setUrgentCount(s, t, slot)
	}
}

// dropUnsent drops the unsent counts of a key.
func (c *Collector) dropUnsent(s *shard, slot int) {
	k := &s.notes[slot]
	n := int64(k.total())
	c.unsent -= n
	c.aged += n
	k.held, k.delta, k.sent = 0, 0, c.start
	s.unsent.remove(slot)
}

// carryRecents copies the recent counts of a key from its old profile, for windows of the same
// length.
func (p *profile) carryRecents(to []recent, old *profile, from []recent) {
	for i := range p.levels {
		for j := range old.levels {
			if old.levels[j].Rate.Per == p.levels[i].Rate.Per {
				to[i] = from[j]
				break
			}
		}
	}
}

// adopt takes the held-back counts from the groups of the previous rule.
func (g *heldGroups) adopt(old *heldGroups) {
	if g.paramsOnly == old.paramsOnly {
		*g = *old
		return
	}
	for i := range old.all {
		old.lump(&old.all[i])
	}
	g.others = old.others
}

// releaseUnruled stops counting the keys that have no absolute threshold by the next rules,
// or that those count in another unit. It is called while the old rules are in force.
func (l *localDetector) releaseUnruled(c *Collector, next *profiles) {
	for i := range l.keys {
		x := &l.keys[i]
		if x.shard == nil {
			continue
		}
		t := x.shard.table.Load()
		rule, text, _ := bytes.Cut(t.key(&t.slots[x.slot]), []byte{' '})
		if p := &next.all[next.indexOf(rule, text)]; !p.absolute || p.rule.Count != c.profiles.all[x.profile].rule.Count {
			x.shard.notes[x.slot].local = 0
			l.release(c, uint16(i+1))
		}
	}
}

// changeRules updates the exact counts to the present rules. The counts of unchanged windows
// continue. A key that is hot stays hot at least until its new windows are complete.
func (l *localDetector) changeRules(c *Collector, last *profiles) {
	for i := range l.keys {
		x := &l.keys[i]
		if x.shard == nil {
			continue
		}
		old := &last.all[x.profile]
		x.profile = x.shard.notes[x.slot].profile
		p, recents := &c.profiles.all[x.profile], c.recents(x.shard, x.slot)
		counts := make([]paneCounts, c.profiles.levels)
		for j := range p.levels {
			level := &p.levels[j]
			if level.Kind != rules.FixedRate {
				continue
			}
			if slot := old.absoluteOf(level.window); slot >= 0 {
				counts[j] = x.counts[slot]
				counts[j].counts = counts[j].counts.Clone() // two thresholds may have this window
				continue
			}
			counts[j] = level.countsSince(&recents[j], 0)
			counts[j].complete = c.now + int64(level.Rate.Per)
		}
		x.counts = counts
		if x.hot {
			l.keepHot(c, x, old)
		}
	}
}

// keepHot finds the threshold by which a hot key stays hot. It reports the key again if the
// threshold or the key's limit has changed.
func (l *localDetector) keepHot(c *Collector, x *localKey, old *profile) {
	p, was := &c.profiles.all[x.profile], &old.levels[x.level]
	if x.level = p.absoluteOf(was.window); x.level < 0 {
		x.level = slices.IndexFunc(p.levels, func(l level) bool { return l.Kind == rules.FixedRate })
	}
	if p.levels[x.level].cause(p.rule.Count) != was.cause(old.rule.Count) || !samePublished(p.limit, old.limit) {
		l.report(c, x, true)
	}
}

func samePublished(a, b *rules.Limit) bool {
	rate, burst, mode := a.Published()
	oldRate, oldBurst, oldMode := b.Published()
	return rate == oldRate && burst == oldBurst && mode == oldMode
}

// absoluteOf returns the index of the first absolute threshold over a window, or -1.
func (p *profile) absoluteOf(w rules.Window) int {
	return slices.IndexFunc(p.levels, func(l level) bool { return l.Kind == rules.FixedRate && l.window == w })
}
