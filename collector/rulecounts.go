package collector

import (
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// RuleCount is the sum of one rule's counts.
type RuleCount struct {
	Rule string
	// N is in the rule's unit. Each request is counted once, even if it makes several keys.
	// Pairings of repeated values of [rules.ByNames] are counted separately.
	N int64
}

// ruleCount is the published sum of one rule.
type ruleCount struct {
	rule     string
	unit     rules.Unit
	profiles []uint32 // the profiles whose counts are added up
	before   int64    // sum of earlier rules with this id
	n        atomic.Int64
}

// newRuleCounts returns the sums of the rules with thresholds. They add up the totals of a rule
// whose keys overlap, and otherwise its keys.
func newRuleCounts(rules *rules.Rules, p *profiles) []*ruleCount {
	if rules == nil {
		return nil
	}
	var all []*ruleCount
	for i := range rules.Rules {
		r := &rules.Rules[i]
		if len(r.Hot) == 0 {
			continue
		}
		n := p.rules[r.ID]
		indices := []uint32{n}
		for j := range r.Except {
			indices = append(indices, p.except[&r.Except[j]])
		}
		if total, overlaps := p.totals[n]; overlaps {
			indices = []uint32{total}
		}
		all = append(all, &ruleCount{rule: r.ID, unit: r.Count, profiles: indices})
	}
	return all
}

// setCounted replaces the sums by those of new rules. Each sum continues from the last rule
// with the same id. setCounted returns the ids of rules that count in another unit than the
// last one did. Their sums start at zero.
func (c *Collector) setCounted(all []*ruleCount) (otherUnit map[string]bool) {
	otherUnit = make(map[string]bool)
	for _, r := range all {
		switch last := c.sums[r.rule]; {
		case last == nil:
		case last.unit == r.unit:
			r.before = last.n.Load()
			r.n.Store(r.before)
		default:
			otherUnit[r.rule] = true
		}
		c.sums[r.rule] = r
	}
	c.counted.Store(&all)
	return otherUnit
}

// publishCounted makes the sums available to Counted.
func (c *Collector) publishCounted() {
	for _, r := range *c.counted.Load() {
		sum := r.before
		for _, profile := range r.profiles {
			sum += c.profiles.all[profile].taken
		}
		r.n.Store(sum)
	}
}

// Counted returns the sums of each rule with thresholds since New, as of the last flush. They
// include counts that were not sent. The sums continue when the rules are reloaded, even after
// a time without the rule, unless it counts in another unit. Counted is safe for concurrent
// use.
func (c *Collector) Counted() []RuleCount {
	counted := *c.counted.Load()
	all := make([]RuleCount, len(counted))
	for i, r := range counted {
		all[i] = RuleCount{r.rule, r.n.Load()}
	}
	return all
}
