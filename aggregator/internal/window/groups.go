package window

import (
	"bytes"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Groups are the totals of shares: of all keys on one route that have the same parameter
// names. There are as many as their part of the memory holds. A group without room counts
// only in the sum of all, and is compared with that.
type Groups struct {
	panes      int64
	budget     int64 // of byName
	paramsOnly bool
	byName     map[string]*group
	again      int64 // groups that hold such panes, too
	all        group // every count
	strays     group // those whose group is not known, or had no room
	before     int64 // nothing is known of this pane and of those before it
	name       []byte
	resumed    *resumedGroups // what another process counted before
}

// group is the counts of one group's keys, and how many of them are of requests that
// have another key of the group: a request counts once.
type group struct {
	ring.Counts
	again ring.Counts // without panes until there are some
}

func (g *group) Sum(last, panes int64) int64 {
	return max(0, g.Counts.Sum(last, panes)-g.again.Sum(last, panes))
}

// groupSize is about what a group takes besides its panes.
const groupSize = 192

// NewGroups returns totals of groups that keep a number of panes and hold at most budget
// bytes.
func NewGroups(panes, budget int64, paramsOnly bool) *Groups {
	return &Groups{
		before: never, panes: panes, budget: budget, paramsOnly: paramsOnly,
		byName: make(map[string]*group), all: group{Counts: ring.New(panes)}, strays: group{Counts: ring.New(panes), again: ring.New(panes)},
	}
}

// Restart returns empty groups of the same size.
func (g *Groups) Restart() *Groups { return NewGroups(g.panes, g.budget, g.paramsOnly) }

// Used returns how many bytes the groups hold.
func (g *Groups) Used() int64 {
	return int64(len(g.byName))*(groupSize+8*g.panes) + g.again*8*g.panes
}

// Add counts n of a key. A count that surely is in its group already is not added, and one
// that may be is added as if its group were unknown.
func (g *Groups) Add(text []byte, pane, n int64, in decode.InGroup) {
	switch in {
	case decode.SurelyInGroup:
	case decode.MaybeInGroup:
		g.all.Add(pane, n)
		g.strays.Add(pane, n)
	default:
		g.addTo(g.of(text, true), pane, n)
	}
}

// AddNamed counts n of a group.
func (g *Groups) AddNamed(name []byte, pane, n int64) {
	if string(name) == wire.Rest {
		g.addTo(nil, pane, n)
		return
	}
	g.name = append(g.name[:0], name...)
	g.addTo(g.named(true), pane, n)
}

func (g *Groups) addTo(of *group, pane, n int64) {
	g.all.Add(pane, n)
	if of == nil {
		of = &g.strays
	}
	of.Add(pane, n)
}

// of returns the group of a key, or nil. With create it makes one if there is room.
func (g *Groups) of(text []byte, create bool) *group {
	if base.IsCutKey(text) {
		return nil
	}
	g.name = base.AppendGroup(g.name[:0], text, g.paramsOnly)
	return g.named(create)
}

// named returns the group of g.name. There is always room for one.
func (g *Groups) named(create bool) *group {
	of := g.byName[string(g.name)]
	if of == nil && create && (len(g.byName) == 0 || g.Used()+groupSize+8*g.panes <= g.budget) {
		of = &group{Counts: ring.New(g.panes)}
		g.byName[string(g.name)] = of
	}
	return of
}

// TakeOffCount is like TakeOff for a count, which a [decode.HeldBack] may have subtracted
// already.
func (g *Groups) TakeOffCount(name []byte, pane, n int64, in decode.InGroup) {
	switch in {
	case decode.SurelyInGroup:
	case decode.MaybeInGroup:
		g.strays.again.Add(pane, n)
	default:
		g.TakeOff(name, pane, n)
	}
}

// TakeOff takes n off the total of a group, whose keys had so many counts too much by a
// name of [base.AppendAgain], which comes with the same flush. A group that has no
// room for that keeps too high a total.
func (g *Groups) TakeOff(name []byte, pane, n int64) {
	var ok bool
	if g.name, ok = base.CutAgain(g.name[:0], name); !ok {
		return
	}
	g.takeOffAll(pane, n)
	if string(g.name) == wire.Rest { // of an unknown group
		g.strays.again.Add(pane, n)
		return
	}
	if of := g.named(true); of != nil && g.hasAgain(of) {
		of.again.Add(pane, n)
	}
}

func (g *Groups) takeOffAll(pane, n int64) {
	if g.all.again.IsZero() {
		g.all.again = ring.New(g.panes)
	}
	g.all.again.Add(pane, n)
}

// hasAgain makes the panes of what is taken off a group, and reports whether there is room.
func (g *Groups) hasAgain(of *group) bool {
	if of.again.IsZero() {
		if g.Used()+8*g.panes > g.budget {
			return false
		}
		of.again = ring.New(g.panes)
		g.again++
	}
	return true
}

// Sweep forgets the groups that have no count left.
func (g *Groups) Sweep(now int64) {
	for name, of := range g.byName {
		if of.Last <= now-g.panes {
			delete(g.byName, name)
			if !of.again.IsZero() {
				g.again--
			}
		}
	}
}

// Bounds returns the low and high total of a key's group, in the window that ends with
// pane last; high is [rules.Unknown] if it is not known, as where collectors hold
// counts back and do not tell of which group. The key for what requests have
// beyond their keys has the total of all groups on its route, and so has that for requests
// whose body could not be read.
func (g *Groups) Bounds(w *Window, text []byte, last int64) (low, high int64) {
	panes := int64(w.Panes)
	of, most := g.of(text, false), g.all.Sum(last, panes)
	hidden := w.hidden.Sum(last, panes)
	known := true
	switch {
	case base.IsMore(text), base.IsUnread(text):
		most = g.onRoute(text, last, panes)
	case of != nil:
		most = of.Sum(last, panes)
	default:
		known = false
	}
	s := w.lacksOfAny(last)
	if known {
		low = most - g.strays.again.Sum(last, panes)
		hidden += g.strays.Counts.Sum(last, panes)
	}
	lacks, later := g.fromBefore(w, last)
	if g.again > 0 || g.resumed.hasAgain() { // what takes off a total may be among these
		s.later, s.before = s.later+max(0, s.lacks)+s.heldBack+s.before, s.before+s.later
		later, lacks = later+max(0, lacks), plus(lacks, later)
		if lacks == rules.Unknown && g.resumed != nil {
			low = 0
		}
	}
	low = max(0, low-s.later-later)
	if w.untold > 0 || max(w.lost, g.before) > last-panes || s.lacks == rules.Unknown || lacks == rules.Unknown {
		return low, rules.Unknown
	}
	return low, most + hidden + s.lacks + s.heldBack + s.before + lacks
}

// onRoute returns the total of the groups on the route of a key of [base.AppendMore] or
// [base.AppendUnread]. Requests of the former have keys of other groups, too.
func (g *Groups) onRoute(text []byte, last, panes int64) (sum int64) {
	route := text[:bytes.LastIndexByte(text, '?')+1]
	for name, of := range g.byName {
		if strings.HasPrefix(name, string(route)) && !base.IsMore([]byte(name)) {
			sum += of.Sum(last, panes)
		}
	}
	return sum
}
