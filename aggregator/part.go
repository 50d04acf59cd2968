package aggregator

import "github.com/hotparam/hotparam"

// oneShard tells whether a rule's keys must all be counted in one place: those
// that are compared with each other, and those of which one explains another.
func oneShard(rule *hotparam.Rule) bool {
	if rule.By.Kind == hotparam.ByCombinations {
		return true
	}
	for i := range rule.Hot {
		if kind := rule.Hot[i].Kind; kind == hotparam.Share || kind == hotparam.Top {
			return true
		}
	}
	return false
}

// home is which of the shards has the keys of a rule that needs them in one.
func home(rule, shards int) int { return rule % shards }
