package config

import (
	"iter"
	"slices"
)

// Doors returns the doors that have an address, with their names: "rls", "auth", "check" and
// "spoe". Endpoints of Auth with the same address are one door.
func (g Guard) Doors() iter.Seq2[string, Door] {
	return func(yield func(string, Door) bool) {
		open := func(name string, d Door) bool { return d.Listen == "" || yield(name, d) }
		if !open("rls", g.RLS) {
			return
		}
		for i, e := range g.Auth {
			same := func(other AuthEndpoint) bool { return other.Listen == e.Listen }
			if !slices.ContainsFunc(g.Auth[:i], same) && !open("auth", e.Door) {
				return
			}
		}
		_ = open("check", g.Check) && open("spoe", g.SPOE)
	}
}
