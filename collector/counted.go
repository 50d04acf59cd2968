package collector

import (
	"sync/atomic"

	"github.com/hotparam/hotparam"
)

// RuleCount is what a rule has counted.
type RuleCount struct {
	Rule string
	// N is in the rule's unit. Each request is counted once, also where it makes several keys,
	// but for the pairings of repeated values of [hotparam.ByNames].
	N int64
}

// ruleCount is the published sum of one rule.
type ruleCount struct {
	rule     string
	profiles []uint32 // whose counts are added up
	n        atomic.Int64
}

// newRuleCounts returns the sums of the rules with thresholds. Where keys overlap that is the
// sum of the totals, otherwise that of the keys.
func newRuleCounts(rules *hotparam.Rules, p *profiles) []ruleCount {
	if rules == nil {
		return nil
	}
	var all []ruleCount
	for i := range rules.Rules {
		r := &rules.Rules[i]
		if len(r.Hot) == 0 {
			continue
		}
		n := p.rules[r.ID]
		of := []uint32{n}
		for j := range r.Except {
			of = append(of, p.except[&r.Except[j]])
		}
		if total, overlaps := p.totals[n]; overlaps {
			of = []uint32{total}
		}
		all = append(all, ruleCount{rule: r.ID, profiles: of})
	}
	return all
}

// publishCounted makes the sums available to Counted.
func (c *Collector) publishCounted() {
	for i := range c.counted {
		r, sum := &c.counted[i], int64(0)
		for _, at := range r.profiles {
			sum += c.profiles.all[at].taken
		}
		r.n.Store(sum)
	}
}

// Counted returns what each rule with thresholds has counted since New, as of the last
// flush, whether it was sent or not. It is safe for concurrent use.
func (c *Collector) Counted() []RuleCount {
	all := make([]RuleCount, len(c.counted))
	for i := range c.counted {
		all[i] = RuleCount{c.counted[i].rule, c.counted[i].n.Load()}
	}
	return all
}
