package middleware

import (
	"bytes"

	"github.com/hotparam/hotparam/internal/base"
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
