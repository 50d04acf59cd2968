package replay

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
)

// Difference holds the outcomes of one key under two versions of the rules.
type Difference struct {
	Event   string     `json:"event"` // "key"
	Rule    string     `json:"rule"`
	Key     string     `json:"key,omitempty"` // empty for the rule's own limit, or for what the rule blocks
	Before  KeyOutcome `json:"before"`
	After   KeyOutcome `json:"after"`
	Changed bool       `json:"changed"`
}

// KeyOutcome is the outcome of one key.
type KeyOutcome struct {
	Hot     int     `json:"hot"`     // number of times
	Seconds float64 `json:"seconds"` // total time hot
	Limited int64   `json:"limited"` // number of requests
}

// Compare merges the reports of two replays of the same log. Changed keys come first, in
// descending order of the difference in limited requests.
func Compare(before, after []KeyReport) []Difference {
	type name struct{ rule, key string }
	byName := make(map[name]*Difference)
	differenceOf := func(r KeyReport) *Difference {
		n := name{r.Rule, r.Key}
		if byName[n] == nil {
			byName[n] = &Difference{Event: "key", Rule: r.Rule, Key: r.Key}
		}
		return byName[n]
	}
	for _, r := range before {
		differenceOf(r).Before = KeyOutcome{r.Hot, r.Seconds, r.Limited}
	}
	for _, r := range after {
		differenceOf(r).After = KeyOutcome{r.Hot, r.Seconds, r.Limited}
	}
	all := make([]Difference, 0, len(byName))
	for _, d := range byName {
		d.Changed = d.Before != d.After
		all = append(all, *d)
	}
	slices.SortFunc(all, func(a, b Difference) int {
		return cmp.Or(
			-base.CompareBool(a.Changed, b.Changed),
			-cmp.Compare(a.moved(), b.moved()),
			-cmp.Compare(max(a.Before.Limited, a.After.Limited), max(b.Before.Limited, b.After.Limited)),
			-cmp.Compare(max(a.Before.Seconds, a.After.Seconds), max(b.Before.Seconds, b.After.Seconds)),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key),
		)
	})
	return all
}

// moved returns the difference in limited requests.
func (d *Difference) moved() int64 {
	n := d.After.Limited - d.Before.Limited
	return max(n, -n)
}
