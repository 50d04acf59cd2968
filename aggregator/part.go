package aggregator

import "github.com/hotparam/hotparam"

// homes are, by rule number, the part that has all keys of a rule which must be
// counted in one place, -1 where each key has its own. Within a process these are
// also the keys of which a request makes several, so that one tells of another.
func homes(rules *hotparam.Rules, parts int) []int {
	at := make([]int, len(rules.Rules))
	for i := range at {
		if at[i] = -1; rules.Rules[i].Whole() || rules.Rules[i].Overlaps() {
			at[i] = i % parts
		}
	}
	return at
}
