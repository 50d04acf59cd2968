package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// eventKind is a kind of event: a fault, or a change of the rules.
type eventKind struct {
	name              string
	weight            int      // occurrences in a bag of all kinds
	scenarios         []string // scenarios in addition to all
	deployment        string   // the only deployment that has it; empty means each
	exclusive         string   // two kinds of one group never occur together
	shortest, longest time.Duration
	// begin begins the event and returns a function that ends it.
	begin func(r *run, e *plannedFault) (end func())
}

// kinds are all kinds of events.
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

// kindNames returns the names of all kinds of events.
func kindNames() (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].name)
	}
	return names
}

func kindNamed(name string) (*eventKind, bool) {
	i := slices.IndexFunc(kinds, func(k eventKind) bool { return k.name == name })
	if i < 0 {
		return nil, false
	}
	return &kinds[i], true
}

// rng returns the source of an event's random choices.
func (e *plannedFault) rng() *rand.Rand { return rand.New(rand.NewPCG(e.seed, 2)) }

// nothing ends a fault that ended on its own.
func nothing() {}
