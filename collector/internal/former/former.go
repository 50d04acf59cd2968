// Package former keeps the rules that a sink must still know after a reload has removed them.
// Their counts may still arrive, and an aggregator that has the rule still, or again, needs them.
package former

import (
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// Max bounds the number of removed rules that are kept.
const Max = 1000

// List holds the IDs of removed rules, in the order of removal. Its zero value is empty. It is
// not safe for concurrent use.
type List struct{ ids []string }

// Update adds the rules of known, by ID, that are not in rules to the list, and removes the ones
// that have returned. If more than [Max] remain, it deletes the first removed from known.
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
