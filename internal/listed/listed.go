// Package listed is the JSON form of what a namespace holds: hot keys, suspects, controls,
// members and instances. `hotparam list --json` prints it and the aggregator's page serves it, so that
// a field has one name wherever it is read.
package listed

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Suspect is a key that may be hot.
type Suspect struct {
	Key  string  `json:"key"`
	Rule string  `json:"rule"`
	Rate float64 `json:"rate"`
}

// OfSuspects returns suspects in their form for output. The result is never nil.
func OfSuspects(suspects []rules.Hot) []Suspect {
	keys := make([]Suspect, 0, len(suspects))
	for i := range suspects {
		h := &suspects[i]
		keys = append(keys, Suspect{h.Text, h.Rule, h.Rate})
	}
	return keys
}

// Instance is a process that sends counts.
type Instance struct {
	Name  string    `json:"name"`
	Heard time.Time `json:"heard"`
}

// OfInstances returns instances in their form for output. The result is never nil.
func OfInstances(all []rules.Instance) []Instance {
	instances := make([]Instance, 0, len(all))
	for _, i := range all {
		instances = append(instances, Instance{i.Name, i.Heard.UTC()})
	}
	return instances
}
