package window

import (
	"bytes"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
)

// Totals are counts of requests, for rules whose requests have several keys.
//
// The requests of each route are counted by the instances ([base.TotalParams]), so they cost one
// line per route and flush. A route has no total if there is no room, or if instances of earlier
// versions do not count it. Then the share of its keys is unknown.
//
// The repeats of each group are the requests that are counted repeatedly when the counts of its
// keys are added up. Keys of one group have the same names, so a request counts for one of them,
// unless it repeats a parameter: "q=1&q=2" is a request of two. Instances count those beyond the
// first ([base.AppendAgain]).
type Totals struct {
	panes   int64
	max     int // maximum number of routes, and of groups
	byRoute map[string]*total
	byGroup map[string]*ring.Counts
	noRoom  int64 // newest pane with a repeat of a group for which there was no room
	before  int64 // counts of this pane and earlier ones are unknown
}

// total holds the counts of one route.
type total struct {
	ring.Counts
	began int64 // first pane with a count
}

// totalSize is the approximate memory of a route or a group without its panes.
const totalSize = 192

// NewTotals returns totals that keep a number of panes and hold at most budget bytes.
func NewTotals(panes, budget int64) *Totals {
	return newTotals(panes, maxTotals(panes, budget))
}

func newTotals(panes int64, limit int) *Totals {
	return &Totals{
		panes: panes, max: limit, byRoute: make(map[string]*total), byGroup: make(map[string]*ring.Counts),
		noRoom: never, before: never,
	}
}

// maxTotals returns the number of routes that have room, and of groups.
func maxTotals(panes, budget int64) int { return int(max(1, budget/2/(totalSize+8*panes))) }

// Restart returns empty totals of the same size.
func (t *Totals) Restart() *Totals { return newTotals(t.panes, t.max) }

// Resize sets the memory of the totals in bytes, at pane now. If they hold more, they restart
// empty after that pane.
func (t *Totals) Resize(budget, now int64) {
	if t.max = maxTotals(t.panes, budget); max(len(t.byRoute), len(t.byGroup)) > t.max {
		*t = *t.Restart()
		t.BeginAfter(now)
	}
}

// BeginAfter records that the counts of a pane and of all panes before it are unknown.
func (t *Totals) BeginAfter(pane int64) { t.before = max(t.before, pane) }

// Used returns the memory of the totals in bytes.
func (t *Totals) Used() int64 { return int64(len(t.byRoute)+len(t.byGroup)) * (totalSize + 8*t.panes) }

// Sweep forgets the routes and groups that have no count left.
func (t *Totals) Sweep(now int64) {
	for route, total := range t.byRoute {
		if total.Last <= now-t.panes {
			delete(t.byRoute, route)
		}
	}
	for group, counts := range t.byGroup {
		if counts.Last <= now-t.panes {
			delete(t.byGroup, group)
		}
	}
}

// Add counts n of the total with this text.
func (t *Totals) Add(text []byte, pane, n int64) {
	route := text[:len(text)-len(base.TotalParams)]
	counts := t.byRoute[string(route)]
	if counts == nil {
		if len(t.byRoute) >= t.max {
			return
		}
		counts = &total{ring.New(t.panes), pane}
		t.byRoute[string(route)] = counts
	}
	counts.began = min(counts.began, pane)
	counts.Add(pane, n)
}

// AddRepeats counts n under a name of [base.AppendAgain].
func (t *Totals) AddRepeats(name []byte, pane, n int64) {
	group, ok := base.CutAgain(nil, name)
	if !ok {
		return
	}
	counts := t.byGroup[string(group)]
	if counts == nil {
		if len(t.byGroup) >= t.max {
			t.noRoom = max(t.noRoom, pane)
			return
		}
		fresh := ring.New(t.panes)
		counts = &fresh
		t.byGroup[string(group)] = counts
	}
	counts.Add(pane, n)
}

// totalOf returns the total of a key's route, or nil.
func (t *Totals) totalOf(text []byte) *total {
	return t.byRoute[string(text[:bytes.LastIndexByte(text, '?')+1])]
}

// Began returns the first pane with a count of a key's route, or [ring.Never] if it has no total.
func (t *Totals) Began(text []byte) (pane int64) {
	if counts := t.totalOf(text); counts != nil {
		return counts.began
	}
	return never
}

// High returns the most requests of a key's route in the window that ends with pane last, or
// [published.Unknown] if there is no total or some counts may be lost.
func (t *Totals) High(w *Window, text []byte, last int64) int64 {
	counts := t.totalOf(text)
	if counts == nil {
		return published.Unknown
	}
	return t.maximum(w, &counts.Counts, last)
}

// HighRepeats returns an upper bound of a group's repeats in the window that ends with pane last:
// those counted, and all counts that may be missing. It returns [published.Unknown] if there is no bound.
func (t *Totals) HighRepeats(w *Window, group []byte, last int64) int64 {
	counts := t.byGroup[string(group)]
	if counts == nil && t.noRoom > last-int64(w.Panes) {
		return published.Unknown
	}
	return t.maximum(w, counts, last)
}

// maximum returns the most that counts, which may be nil, can be in the window that ends with pane
// last.
func (t *Totals) maximum(w *Window, counts *ring.Counts, last int64) int64 {
	panes := int64(w.Panes)
	lacks := w.lossOfAny(last).lacks
	if max(w.lost, w.beforeStart, t.before) > last-panes || lacks == published.Unknown {
		return published.Unknown
	}
	bound := lacks + w.hidden.Sum(last, panes) + w.heldBack
	if counts != nil {
		bound += counts.Sum(last, panes)
	}
	return bound
}
