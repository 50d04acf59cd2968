// Package former has the rules that a sink goes on to know after a reload has removed them: their
// counts may still come, and an aggregator that has the rule still, or again, needs them.
package former

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// Max bounds how many removed rules are known.
const Max = 1000

// List has the IDs of removed rules, the first removed first. Its zero value is empty. It is not
// safe for concurrent use.
type List struct{ ids []string }

// Update moves the rules of known, by ID, that are not in rules to the list, and takes those that
// are back off it. If there are more than [Max], it deletes those removed first from known.
func Update[R any](l *List, known map[string]R, rules *rules.Rules) {
	present := make(map[string]bool, len(rules.Rules))
	for i := range rules.Rules {
		present[rules.Rules[i].ID] = true
	}
	l.ids = slices.DeleteFunc(l.ids, func(id string) bool { return present[id] })
	listed := make(map[string]bool, len(l.ids))
	for _, id := range l.ids {
		listed[id] = true
	}
	for id := range known {
		if !present[id] && !listed[id] {
			l.ids = append(l.ids, id)
		}
	}
	if over := len(l.ids) - Max; over > 0 {
		for _, id := range l.ids[:over] {
			delete(known, id)
		}
		l.ids = slices.Delete(l.ids, 0, over)
	}
}
