package hotkeys

import (
	"iter"
	"slices"
)

// healable are the keys in Redis, without the prefix of the namespace, that a publisher repairs
// if they hold foreign values. The heartbeat is not one of them, since each renewal overwrites
// it.
var healable = [...]string{"hot", "info", "version", "owners", "events", "schema", "suspects", "instances"}

// Healed counts the repairs of each key in Redis that held a foreign value: one of
// another type, or one that cannot be read.
type Healed [len(healable)]uint64

// All returns an iterator over the keys' names, without their namespace, and the counts.
func (h Healed) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i, name := range healable {
			if !yield(name, h[i]) {
				return
			}
		}
	}
}

// Add adds another publisher's counts.
func (h *Healed) Add(other Healed) {
	for i, n := range other {
		h[i] += n
	}
}

func (h *Healed) count(names []string) {
	for _, name := range names {
		if i := slices.Index(healable[:], name); i >= 0 {
			h[i]++
		}
	}
}
