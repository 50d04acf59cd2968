package middleware

import "slices"

// formerLimits are the limits of removed rules and exceptions, with their used tokens, since a
// removed rule may return. They are guarded by sharing.mu.
type formerLimits struct {
	specs map[string]*limitSpec // by name
	order []string              // names, the earliest removed first
}

// maxFormer bounds the number of removed limits that are kept. A limit beyond it starts afresh
// if it returns.
const maxFormer = 256

// update records which limits were removed, and which have returned.
func (f *formerLimits) update(old, set *ruleSet) {
	present := make(map[string]bool)
	for _, s := range set.allSpecs {
		present[s.name] = true
		delete(f.specs, s.name)
	}
	f.order = slices.DeleteFunc(f.order, func(name string) bool { return present[name] })
	for _, s := range old.allSpecs {
		if !present[s.name] {
			f.specs[s.name] = s
			f.order = append(f.order, s.name)
		}
	}
	for len(f.order) > maxFormer {
		delete(f.specs, f.order[0])
		f.order = f.order[1:]
	}
}

// heatedStates are the states that keys had while their rule had hot, by rule and member. They
// are never changed.
type heatedStates map[string]map[string]*hotState

// maxHeated bounds the number of states that are kept.
const maxHeated = 1 << 14
