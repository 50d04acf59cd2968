// Package listed is the JSON form of the state of a namespace: hot keys, suspects, controls and
// members. `hotparam list --json` prints it and the aggregator's page serves it, so that a field
// has the same name everywhere. [Rows] are the tables of `hotparam list`.
package listed

import "github.com/hotparam/hotparam/internal/published"

// Suspect is a key that may be hot.
type Suspect struct {
	Key  string  `json:"key"`
	Rule string  `json:"rule"`
	Rate float64 `json:"rate"`
}

// OfSuspects returns suspects in their output form. The result is never nil.
func OfSuspects(suspects []published.Hot) []Suspect {
	keys := make([]Suspect, 0, len(suspects))
	for i := range suspects {
		h := &suspects[i]
		keys = append(keys, Suspect{h.Text, h.Rule, h.Rate})
	}
	return keys
}
