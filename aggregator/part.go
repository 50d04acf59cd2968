package aggregator

import "github.com/hotparam/hotparam/rules"

// homes returns, by rule number, the part that counts all keys of a rule which must be counted
// in one place, and -1 for other rules. The former are rules that compare keys, and rules whose
// requests have several keys.
func homes(rules *rules.Rules, parts int) []int {
	at := make([]int, len(rules.Rules))
	for i := range at {
		if at[i] = -1; rules.Rules[i].Whole() || rules.Rules[i].Overlaps() {
			at[i] = i % parts
		}
	}
	return at
}
