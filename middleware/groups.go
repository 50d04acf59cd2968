package middleware

import (
	"bytes"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// groups are the groups of the keys that a rule makes from one request. If the rule has a
// share, or its keys overlap, the aggregator adds up a group's requests by its keys. So the
// keys beyond the first of a group are also counted under a separate name, which the
// aggregator subtracts.
type groups struct {
	follow bool   // whether the rule needs groups, and the request may have several keys of one
	texts  []byte // the groups' texts, one after the other
	all    []group
	again  []byte // buffer for the separate name
}

// group is one group.
type group struct {
	end   int    // end of its text in texts
	again uint64 // number of its keys beyond the first
}

// beginGroups prepares for the keys of one rule, and reports whether the request may have
// several keys of a group.
func (r *request) beginGroups() bool {
	if !r.params.list.RepeatsNames() {
		return false
	}
	r.groups.texts, r.groups.all = r.groups.texts[:0], r.groups.all[:0]
	return true
}

// add adds a counted key to its group.
func (g *groups) add(text []byte, paramsOnly bool) {
	start := len(g.texts)
	g.texts = base.AppendGroup(g.texts, text, paramsOnly)
	from := 0
	for i := range g.all {
		known := &g.all[i]
		if bytes.Equal(g.texts[from:known.end], g.texts[start:]) {
			g.texts = g.texts[:start]
			known.again++
			return
		}
		from = known.end
	}
	g.all = append(g.all, group{end: len(g.texts)})
}

// countAgain counts the groups' keys beyond their first.
func (r *request) countAgain(c *candidate) {
	g, groups := r.guard, &r.groups
	from := 0
	for i := range groups.all {
		group := &groups.all[i]
		text := groups.texts[from:group.end]
		from = group.end
		if group.again == 0 {
			continue
		}
		name := base.AppendAgain(append(groups.again[:0], c.prefix...), text)
		groups.again = name
		size := len(name)
		if name = g.fitKey(name, len(c.prefix)); len(name) != size {
			continue // a cut name could be a key's; so the total is too high
		}
		r.addCount(&claim{rule: c, spec: c.spec}, rules.Hash(name), name, group.again)
	}
}
