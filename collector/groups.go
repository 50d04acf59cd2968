package collector

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/wire"
)

// GroupSink is a [Sink] whose receiver adds up what is held back of groups
// ([Flush.HeldBack]).
type GroupSink interface {
	// Groups reports whether the receiver adds them up.
	Groups() bool
}

// HeldBack is how many counts of a group's keys, of this flush, are held back. Rest is
// the group of all that have no line of their own.
type HeldBack struct {
	Rule  string
	Group []byte
	N     int64
}

// groups are what a flush holds back of the groups of one rule with a share. Nothing of
// it is ever told twice: lines of the keys that come later begin before their flush.
type groups struct {
	rule       string
	paramsOnly bool

	at        map[string]int // in all
	all       []groupHeld
	rest      [2]int64 // of groups beyond the bound; and the same of what counts once too often
	name      []byte
	lastLines int // of the last flush
}

type groupHeld struct {
	name   []byte
	n, was int64 // in this flush and in the last one
}

// leastGroups is how many lines are kept free for the groups of a rule: for the rest.
const leastGroups = 2

func newGroups(r *hotparam.Rule) *groups {
	return &groups{rule: r.ID, paramsOnly: r.ParamsOnly, at: make(map[string]int)}
}

// hold notes that n counts of a key are held back.
func (g *groups) hold(text []byte, n int64) {
	switch {
	case keytext.IsAgain(text):
		g.name = append(g.name[:0], text...)
	case keytext.IsCut(text):
		g.rest[0] += n
		return
	default:
		g.name = keytext.AppendGroup(g.name[:0], text, g.paramsOnly)
	}
	at, known := g.at[string(g.name)]
	switch {
	case known:
	case len(g.all) < wire.MaxGroups:
		at = len(g.all)
		g.all = append(g.all, groupHeld{name: slices.Clone(g.name)})
		g.at[string(g.name)] = at
	default: // in the place of the least, whose counts are among the rest from now on
		for i := range g.all {
			if x, least := &g.all[i], &g.all[at]; x.n+x.was < least.n+least.was {
				at = i
			}
		}
		g.lump(&g.all[at])
		delete(g.at, string(g.all[at].name))
		g.all[at] = groupHeld{name: append(g.all[at].name[:0], g.name...)}
		g.at[string(g.name)] = at
	}
	g.all[at].n += n
}

// lump puts a group's counts among the rest.
func (g *groups) lump(x *groupHeld) {
	if keytext.IsAgain(x.name) {
		g.rest[1] += x.n
	} else {
		g.rest[0] += x.n
	}
}

// take appends what is held back, in at most so many lines, but at least those of the
// rest, and begins the next flush. The names are valid until then. The groups with most
// have lines of their own.
func (g *groups) take(to []HeldBack, lines int) []HeldBack {
	if len(g.all) == 0 && g.rest == [2]int64{} {
		return to
	}
	slices.SortFunc(g.all, func(a, b groupHeld) int { return cmp.Compare(b.n, a.n) })
	own := len(g.all)
	for own > 0 && g.all[own-1].n == 0 {
		own--
	}
	if own+leastGroups > lines {
		own = max(0, lines-leastGroups)
	}
	for i := range g.all {
		switch x := &g.all[i]; {
		case x.n == 0:
		case i < own:
			to = append(to, HeldBack{g.rule, x.name, x.n})
		default:
			g.lump(x)
		}
	}
	if g.rest[0] > 0 {
		to = append(to, HeldBack{g.rule, []byte(wire.Rest), g.rest[0]})
	}
	if g.rest[1] > 0 {
		to = append(to, HeldBack{g.rule, keytext.AppendAgain(nil, []byte(wire.Rest)), g.rest[1]})
	}
	g.rest = [2]int64{}
	for i := range g.all {
		x := &g.all[i]
		x.n, x.was = 0, x.n
		g.at[string(x.name)] = i
	}
	return to
}
