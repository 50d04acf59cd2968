package replay

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
)

// Difference is what became of one key by two versions of the rules.
type Difference struct {
	Event   string  `json:"event"` // "key"
	Rule    string  `json:"rule"`
	Key     string  `json:"key,omitempty"` // none: the rule's own limit, or what it blocks
	Before  Outcome `json:"before"`
	After   Outcome `json:"after"`
	Changed bool    `json:"changed"`
}

// Outcome is what became of a key.
type Outcome struct {
	Hot     int     `json:"hot"`     // times
	Seconds float64 `json:"seconds"` // hot, in all
	Limited int64   `json:"limited"` // requests
}

// Compare brings the reports of two replays of one log together: what differs
// first, and of that what changes the most requests.
func Compare(before, after []KeyReport) []Difference {
	type name struct{ rule, key string }
	byName := make(map[name]*Difference)
	of := func(r KeyReport) *Difference {
		n := name{r.Rule, r.Key}
		if byName[n] == nil {
			byName[n] = &Difference{Event: "key", Rule: r.Rule, Key: r.Key}
		}
		return byName[n]
	}
	for _, r := range before {
		of(r).Before = Outcome{r.Hot, r.Seconds, r.Limited}
	}
	for _, r := range after {
		of(r).After = Outcome{r.Hot, r.Seconds, r.Limited}
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

// moved is by how many requests the two differ.
func (d *Difference) moved() int64 {
	n := d.After.Limited - d.Before.Limited
	return max(n, -n)
}
