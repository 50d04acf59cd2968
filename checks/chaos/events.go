package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// kind is a kind of fault.
type kind struct {
	name        string
	weight      int      // how often in a bag of all kinds
	scenarios   []string // besides all
	deployment  string   // the only one that has it; empty: each
	exclusive   string   // two of one group are never at a time
	least, most time.Duration
	// begin begins the fault; the function that it returns ends it.
	begin func(r *run, e *event) (end func())
}

// kinds are all that can happen.
var kinds = slices.Concat(processKinds, redisKinds, nodeKinds, ruleKinds, publishingKinds, linkKinds, kafkaKinds)

// Scenarios returns the names of the scenarios.
func Scenarios() []string {
	names := []string{"all", "calm"}
	for i := range kinds {
		for _, name := range kinds[i].scenarios {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Kinds returns the names of all kinds of events.
func kindNames() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

func kindNamed(name string) (*kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return nil, false
	}
	return &kinds[i], true
}

// rng returns the choices of an event.
func (e *event) rng() *rand.Rand { return rand.New(rand.NewPCG(e.draw, 2)) }

// nothing ends a fault that was over when it had begun.
func nothing() {}
