package middleware

import (
	"slices"
	"strings"
)

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

// heatedBy returns the hot-key states to keep after a reload: all states of rules that lose
// their thresholds or are removed now, and earlier states whose bucket is not full yet.
func (g *Guard) heatedBy(old, set *ruleSet) heatedStates {
	next, n := make(heatedStates), 0
	add := func(rule, member string, state *hotState) {
		if n >= maxHeated {
			return
		}
		if next[rule] == nil {
			next[rule] = make(map[string]*hotState)
		}
		next[rule][member] = state
		n++
	}
	lost := make(map[string]bool)
	for i := range old.rules {
		if was := &old.rules[i]; len(was.Hot) > 0 {
			r := set.byID(was.ID)
			lost[was.ID] = r == nil || len(r.Hot) == 0
		}
	}
	g.hot.Payloads(func(member string, state *hotState) {
		if rule, _, _ := strings.Cut(member, " "); lost[rule] {
			add(rule, member, state)
		}
	})
	now := g.opts.clock()
	for rule, states := range g.heated {
		for member, state := range states {
			if state.timeToFull(now) > 0 {
				add(rule, member, state)
			}
		}
	}
	return next
}
