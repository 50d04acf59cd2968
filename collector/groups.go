package collector

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// HeldBack is the sum N of a group's counts since the last flush that are held back. The group
// [wire.Rest] covers all groups without a HeldBack of their own.
type HeldBack struct {
	Rule  string
	Group []byte
	N     int64
}

// heldGroups hold the held-back counts of the groups of one rule with a share. The receiver counts
// nothing twice: when the counts are sent later, their start is before the present flush.
type heldGroups struct {
	rule       string
	paramsOnly bool

	index     map[string]int // index in all, by name
	all       []groupHeld
	others    [2]int64 // counts of further groups: of keys, and of repeated keys
	name      []byte
	lastLines int // lines of the last flush
}

type groupHeld struct {
	name   []byte
	n, was int64 // counts held back by this flush, and by the last one
}

// leastGroups is the number of lines reserved for the groups of a rule: the lines of the rest.
const leastGroups = 2

func newGroups(r *rules.Rule) *heldGroups {
	return &heldGroups{rule: r.ID, paramsOnly: r.ParamsOnly, index: make(map[string]int)}
}

// holdBack adds n held-back counts of a key to its group.
func (g *heldGroups) holdBack(text []byte, n int64) {
	switch {
	case base.IsAgain(text):
		g.name = append(g.name[:0], text...)
	case base.IsCutKey(text):
		g.others[0] += n
		return
	default:
		g.name = base.AppendGroup(g.name[:0], text, g.paramsOnly)
	}
	index, known := g.index[string(g.name)]
	switch {
	case known:
	case len(g.all) < wire.MaxGroups:
		index = len(g.all)
		g.all = append(g.all, groupHeld{name: slices.Clone(g.name)})
		g.index[string(g.name)] = index
	default: // replaces the least group, whose counts are added to the rest
		for i := range g.all {
			if x, least := &g.all[i], &g.all[index]; x.n+x.was < least.n+least.was {
				index = i
			}
		}
		g.lump(&g.all[index])
		delete(g.index, string(g.all[index].name))
		g.all[index] = groupHeld{name: append(g.all[index].name[:0], g.name...)}
		g.index[string(g.name)] = index
	}
	g.all[index].n += n
}

// lump adds a group's counts to the rest.
func (g *heldGroups) lump(x *groupHeld) {
	if base.IsAgain(x.name) {
		g.others[1] += x.n
	} else {
		g.others[0] += x.n
	}
}

// appendHeldBack appends the held-back counts to to and begins the next flush. It uses at most
// lines lines, but always includes the rest. The largest groups have their own lines. Their
// names are valid until the next call of holdBack.
func (g *heldGroups) appendHeldBack(to []HeldBack, lines int) []HeldBack {
	if len(g.all) == 0 && g.others == [2]int64{} {
		return to
	}
	slices.SortFunc(g.all, func(a, b groupHeld) int { return cmp.Compare(b.n, a.n) })
	ownLines := len(g.all)
	for ownLines > 0 && g.all[ownLines-1].n == 0 {
		ownLines--
	}
	if ownLines+leastGroups > lines {
		ownLines = max(0, lines-leastGroups)
	}
	for i := range g.all {
		switch x := &g.all[i]; {
		case x.n == 0:
		case i < ownLines:
			to = append(to, HeldBack{g.rule, x.name, x.n})
		default:
			g.lump(x)
		}
	}
	if g.others[0] > 0 {
		to = append(to, HeldBack{g.rule, []byte(wire.Rest), g.others[0]})
	}
	if g.others[1] > 0 {
		to = append(to, HeldBack{g.rule, base.AppendAgain(nil, []byte(wire.Rest)), g.others[1]})
	}
	g.others = [2]int64{}
	for i := range g.all {
		x := &g.all[i]
		x.n, x.was = 0, x.n
		g.index[string(x.name)] = i
	}
	return to
}
