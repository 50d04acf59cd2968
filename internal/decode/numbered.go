package decode

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// Numbered are the rules in force. Each rule with a threshold has a number, by which counts,
// accounts and gaps refer to it. A rule keeps its number when rules change while running, so
// references to it remain valid. The number of a removed rule is not reused by the rules that
// replace it directly, only by later ones.
//
// Two holders of a Numbered that are given the same rules in the same order get the same
// numbers. A Numbered is not changed.
type Numbered struct {
	inOrder  *rules.Rules
	byNumber *rules.Rules // rules by number; an unused number has a rule without thresholds
	numbers  []int        // numbers of the rules with thresholds, in their order
}

// NumberRules numbers rules by their order.
func NumberRules(rules *rules.Rules) *Numbered {
	n := &Numbered{inOrder: rules, byNumber: rules}
	for i := range rules.Rules {
		if len(rules.Rules[i].Hot) > 0 {
			n.numbers = append(n.numbers, i)
		}
	}
	return n
}

// Next numbers the rules that replace those of n. A rule that counts the same as before keeps
// its number.
func (n *Numbered) Next(ruleset *rules.Rules) *Numbered {
	next := &Numbered{inOrder: ruleset}
	taken := make([]bool, len(n.byNumber.Rules))
	for _, number := range n.numbers {
		taken[number] = true
	}
	all := make([]rules.Rule, len(n.byNumber.Rules))
	for i := range ruleset.Rules {
		rule := &ruleset.Rules[i]
		if len(rule.Hot) == 0 {
			continue
		}
		number := slices.IndexFunc(n.numbers, func(k int) bool { return n.counts(k, rule, ruleset) })
		if number >= 0 {
			number = n.numbers[number]
		} else if number = slices.Index(taken, false); number < 0 {
			number = len(taken)
			taken, all = append(taken, true), append(all, rules.Rule{})
		}
		taken[number] = true
		all[number] = *rule
		next.numbers = append(next.numbers, number)
	}
	byNumber := *ruleset
	byNumber.Rules = all
	next.byNumber = &byNumber
	return next
}

// counts reports whether rule, one of rules, counts the same as the rule with a number: the
// same keys, of the same requests, in the same unit, under the same name. The two may differ in
// the requests that they match, since instances apply that.
func (n *Numbered) counts(number int, rule *rules.Rule, rules *rules.Rules) bool {
	was := &n.byNumber.Rules[number]
	return was.ID == rule.ID && was.CountPrefix(n.inOrder.Namespace) == rule.CountPrefix(rules.Namespace) &&
		was.Count == rule.Count && was.SameKeys(rule)
}

// InOrder returns the rules in the order of the file.
func (n *Numbered) InOrder() *rules.Rules { return n.inOrder }

// ByNumber returns the rules by number. An unused number has a rule without thresholds.
func (n *Numbered) ByNumber() *rules.Rules { return n.byNumber }

// NumberOf returns the number of the rule with an id and a threshold, or -1.
func (n *Numbered) NumberOf(id string) int {
	for _, number := range n.numbers {
		if n.byNumber.Rules[number].ID == id {
			return number
		}
	}
	return -1
}

// Len returns the number of rules with a threshold.
func (n *Numbered) Len() int { return len(n.numbers) }

// Has reports whether number belongs to a rule with a threshold.
func (n *Numbered) Has(number int) bool {
	return 0 <= number && number < len(n.byNumber.Rules) && len(n.byNumber.Rules[number].Hot) > 0
}
