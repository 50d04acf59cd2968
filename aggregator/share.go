package aggregator

import (
	"bytes"

	"github.com/hotparam/hotparam"
)

// groups are the totals that shares are of: of all keys on one route that have
// the same parameters' names. There are at most so many as their part of the
// memory holds; what has no room is in all alone, and is compared with that.
type groups struct {
	panes      int64
	max        int
	paramsOnly bool
	byName     map[string]*group
	all        ring // every count
	strays     ring // those whose group is not known, or had no room
	name       []byte
}

type group struct{ ring }

// groupSize is about what a group takes besides its panes.
const groupSize = 192

func newGroups(panes, budget int64, paramsOnly bool) *groups {
	return &groups{
		panes: panes, max: int(max(1, budget/(groupSize+8*panes))), paramsOnly: paramsOnly,
		byName: make(map[string]*group), all: newRing(panes), strays: newRing(panes),
	}
}

func (g *groups) restart() *groups {
	fresh := newGroups(g.panes, 0, g.paramsOnly)
	fresh.max = g.max
	return fresh
}

func (g *groups) used() int64 { return int64(len(g.byName)) * (groupSize + 8*g.panes) }

// add counts n of a key.
func (g *groups) add(text []byte, pane, n int64) {
	g.all.add(pane, n)
	if of := g.of(text, true); of != nil {
		of.add(pane, n)
	} else {
		g.strays.add(pane, n)
	}
}

// of is the group of a key; nil if it has none, which create may help.
func (g *groups) of(text []byte, create bool) *group {
	if hotparam.IsCut(text) {
		return nil
	}
	g.name = appendGroup(g.name[:0], text, g.paramsOnly)
	of := g.byName[string(g.name)]
	if of == nil && create && len(g.byName) < g.max {
		of = &group{newRing(g.panes)}
		g.byName[string(g.name)] = of
	}
	return of
}

// sweep forgets the groups that have no count left.
func (g *groups) sweep(now int64) {
	for name, of := range g.byName {
		if of.last <= now-g.panes {
			delete(g.byName, name)
		}
	}
}

// bounds are the low and high total of a key's group, in the window that ends with
// pane last; high is [hotparam.Unknown] if it is not known. What
// collectors hold back of all keys together is not known.
func (g *groups) bounds(w *window, text []byte, last int64) (low, high int64) {
	panes := int64(w.Panes)
	of, most := g.of(text, false), &g.all
	hidden := w.hidden.sum(last, panes)
	if of != nil {
		low, most = of.sum(last, panes), &of.ring
		hidden += g.strays.sum(last, panes)
	}
	lacks, before, later := w.lacksOfAny(last)
	low = max(0, low-later)
	if w.held > 0 || w.lost > last-panes || lacks == hotparam.Unknown {
		return low, hotparam.Unknown
	}
	return low, most.sum(last, panes) + hidden + lacks + before
}

// appendGroup appends what is the same of all keys of a group: the route and the
// parameters' names.
func appendGroup(dst, text []byte, paramsOnly bool) []byte {
	from := 0
	if !paramsOnly {
		// A parameter's "?" is escaped, a resource's need not be.
		if from = bytes.LastIndexByte(text, '?') + 1; from == 0 {
			return append(dst, text...) // a route alone
		}
	}
	dst = append(dst, text[:from]...)
	value := false
	for _, c := range text[from:] {
		switch c {
		case '=':
			value = true
		case '&':
			value = false
		}
		if !value {
			dst = append(dst, c)
		}
	}
	return dst
}
