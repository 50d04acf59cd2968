package window

import (
	"bytes"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
)

// Groups are the totals for shares: the sum of all keys on one route with the same parameter
// names. There are as many as fit into their part of the memory. A group without room counts
// only in the sum of all groups, and its keys are compared with that.
type Groups struct {
	panes      int64
	budget     int64 // memory of byName in bytes
	paramsOnly bool
	byName     map[string]*groupCounts
	again      int64       // number of groups with again panes
	all        groupCounts // all counts
	strays     groupCounts // counts whose group is unknown, or had no room
	before     int64       // counts of this pane and earlier ones are unknown
	name       []byte
	resumed    *resumedGroups // bounds of the counts from another process
}

// groupCounts holds the counts of one group's keys. again are those of requests that have another
// key of the group, since a request counts once.
type groupCounts struct {
	ring.Counts
	again ring.Counts // has no panes until there are some counts
}

func (g *groupCounts) Sum(last, panes int64) int64 {
	return max(0, g.Counts.Sum(last, panes)-g.again.Sum(last, panes))
}

// groupSize is the approximate memory of a group without its panes.
const groupSize = 192

// NewGroups returns totals of groups that keep a number of panes and hold at most budget bytes.
func NewGroups(panes, budget int64, paramsOnly bool) *Groups {
	return &Groups{
		before: never, panes: panes, budget: budget, paramsOnly: paramsOnly,
		byName: make(map[string]*groupCounts), all: groupCounts{Counts: ring.New(panes)}, strays: groupCounts{Counts: ring.New(panes), again: ring.New(panes)},
	}
}

// Restart returns empty groups of the same size.
func (g *Groups) Restart() *Groups { return NewGroups(g.panes, g.budget, g.paramsOnly) }

// Used returns the memory of the groups in bytes.
func (g *Groups) Used() int64 {
	return int64(len(g.byName))*(groupSize+8*g.panes) + g.again*8*g.panes
}

// Add counts n of a key. A count that its group surely has already is not added. A count that
// its group may have is added as if the group were unknown.
func (g *Groups) Add(text []byte, pane, n int64, in decode.InGroup) {
	switch in {
	case decode.CertainlyInGroup:
	case decode.MaybeInGroup:
		g.all.Add(pane, n)
		g.strays.Add(pane, n)
	default:
		g.addTo(g.groupOf(text, true), pane, n)
	}
}

// AddNamed counts n of a group.
func (g *Groups) AddNamed(name []byte, pane, n int64) {
	if string(name) == wire.Rest {
		g.addTo(nil, pane, n)
		return
	}
	g.name = append(g.name[:0], name...)
	g.addTo(g.groupNamed(true), pane, n)
}

func (g *Groups) addTo(target *groupCounts, pane, n int64) {
	g.all.Add(pane, n)
	if target == nil {
		target = &g.strays
	}
	target.Add(pane, n)
}

// groupOf returns the group of a key, or nil. If create is true, it adds the group if there is
// room.
func (g *Groups) groupOf(text []byte, create bool) *groupCounts {
	if base.IsCutKey(text) {
		return nil
	}
	g.name = base.AppendGroup(g.name[:0], text, g.paramsOnly)
	return g.groupNamed(create)
}

// groupNamed returns the group of g.name, or nil. There is always room for one group.
func (g *Groups) groupNamed(create bool) *groupCounts {
	found := g.byName[string(g.name)]
	if found == nil && create && (len(g.byName) == 0 || g.Used()+groupSize+8*g.panes <= g.budget) {
		found = &groupCounts{Counts: ring.New(g.panes)}
		g.byName[string(g.name)] = found
	}
	return found
}

// TakeOffCount is like TakeOff for a count that a [decode.HeldBack] may have subtracted
// already.
func (g *Groups) TakeOffCount(name []byte, pane, n int64, in decode.InGroup) {
	switch in {
	case decode.CertainlyInGroup:
	case decode.MaybeInGroup:
		g.strays.again.Add(pane, n)
	default:
		g.TakeOff(name, pane, n)
	}
}

// TakeOff subtracts n from the total of the group in name, a name of [base.AppendAgain]. The
// keys of the group counted that many too often, in the same flush. A group that has no room
// for the subtraction keeps too high a total.
func (g *Groups) TakeOff(name []byte, pane, n int64) {
	var ok bool
	if g.name, ok = base.CutAgain(g.name[:0], name); !ok {
		return
	}
	g.takeOffAll(pane, n)
	if string(g.name) == wire.Rest { // the group is unknown
		g.strays.again.Add(pane, n)
		return
	}
	if found := g.groupNamed(true); found != nil && g.makeAgain(found) {
		found.again.Add(pane, n)
	}
}

func (g *Groups) takeOffAll(pane, n int64) {
	if g.all.again.IsZero() {
		g.all.again = ring.New(g.panes)
	}
	g.all.again.Add(pane, n)
}

// makeAgain allocates the panes of the counts to subtract from a group, and reports whether
// there is room for them.
func (g *Groups) makeAgain(target *groupCounts) bool {
	if target.again.IsZero() {
		if g.Used()+8*g.panes > g.budget {
			return false
		}
		target.again = ring.New(g.panes)
		g.again++
	}
	return true
}

// Sweep forgets the groups that have no count left.
func (g *Groups) Sweep(now int64) {
	for name, counts := range g.byName {
		if counts.Last <= now-g.panes {
			delete(g.byName, name)
			if !counts.again.IsZero() {
				g.again--
			}
		}
	}
}

// Bounds returns the low and high total of a key's group, in the window that ends with pane
// last. high is [published.Unknown] if it is not known, for instance if collectors hold counts back
// without reporting the groups. The key of [base.AppendMore] has the total of all groups on its
// route, as has the key for requests whose body could not be read.
func (g *Groups) Bounds(w *Window, text []byte, last int64) (low, high int64) {
	panes := int64(w.Panes)
	found, sum := g.groupOf(text, false), g.all.Sum(last, panes)
	hidden := w.hidden.Sum(last, panes)
	known := true
	switch {
	case base.IsMore(text), base.IsUnread(text):
		sum = g.onRoute(text, last, panes)
	case found != nil:
		sum = found.Sum(last, panes)
	default:
		known = false
	}
	s := w.lossOfAny(last)
	if known {
		low = sum - g.strays.again.Sum(last, panes)
		hidden += g.strays.Counts.Sum(last, panes)
	}
	lacks, later := g.fromBefore(w, last)
	if g.again > 0 || g.resumed.hasAgain() { // the missing counts may reduce a total
		s.later, s.before = s.later+max(0, s.lacks)+s.heldBack+s.before, s.before+s.later
		later, lacks = later+max(0, lacks), published.Plus(lacks, later)
		if lacks == published.Unknown && g.resumed != nil {
			low = 0
		}
	}
	low = max(0, low-s.later-later)
	if w.heldOutsideGroups > 0 || max(w.lost, g.before) > last-panes || s.lacks == published.Unknown || lacks == published.Unknown {
		return low, published.Unknown
	}
	return low, sum + hidden + s.lacks + s.heldBack + s.before + lacks
}

// onRoute returns the total of the groups on the route of a key of [base.AppendMore] or
// [base.AppendUnread]. It leaves out the group of the former, whose requests also have keys of
// other groups.
func (g *Groups) onRoute(text []byte, last, panes int64) (sum int64) {
	route := text[:bytes.LastIndexByte(text, '?')+1]
	for name, counts := range g.byName {
		if strings.HasPrefix(name, string(route)) && !base.IsMore([]byte(name)) {
			sum += counts.Sum(last, panes)
		}
	}
	return sum
}
