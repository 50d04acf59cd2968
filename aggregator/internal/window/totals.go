package window

import (
	"bytes"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Totals are the requests of each route, for rules whose requests have several keys. Instances
// count them ([base.TotalParams]), so they cost one line per route and flush. A route has no
// total if there is no room, or if instances of earlier versions do not count it. Then the
// share of its keys is unknown.
type Totals struct {
	panes   int64
	max     int
	byRoute map[string]*Total
	before  int64 // counts of this pane and earlier ones are unknown
}

// Total holds the counts of one route.
type Total struct {
	ring.Counts
	began  int64 // first pane with a count
	before int64 // value of Totals.before when it was added
}

// totalSize is the approximate memory of a total without its panes.
const totalSize = 192

// NewTotals returns totals that keep a number of panes and hold at most budget bytes.
func NewTotals(panes, budget int64) *Totals {
	return &Totals{before: never, panes: panes, max: int(max(1, budget/(totalSize+8*panes))), byRoute: make(map[string]*Total)}
}

// Restart returns empty totals of the same size.
func (t *Totals) Restart() *Totals {
	return &Totals{before: never, panes: t.panes, max: t.max, byRoute: make(map[string]*Total)}
}

// Used returns the memory of the totals in bytes.
func (t *Totals) Used() int64 { return int64(len(t.byRoute)) * (totalSize + 8*t.panes) }

// Add counts n of the total with this text.
func (t *Totals) Add(text []byte, pane, n int64) {
	route := text[:len(text)-len(base.TotalParams)]
	total := t.byRoute[string(route)]
	if total == nil {
		if len(t.byRoute) >= t.max {
			return
		}
		total = &Total{ring.New(t.panes), pane, t.before}
		t.byRoute[string(route)] = total
	}
	total.began = min(total.began, pane)
	total.Counts.Add(pane, n)
}

// ForKey returns the total of a key's route, or nil. The bounds of a nil Total are 0 and
// [rules.Unknown].
func (t *Totals) ForKey(text []byte) *Total {
	return t.byRoute[string(text[:bytes.LastIndexByte(text, '?')+1])]
}

// Sweep forgets the routes that have no count left.
func (t *Totals) Sweep(now int64) {
	for route, total := range t.byRoute {
		if total.Last <= now-t.panes {
			delete(t.byRoute, route)
		}
	}
}

// Began returns the first pane with a count.
func (t *Total) Began() int64 { return t.began }

// Bounds returns the low and high total in the window that ends with pane last. high is
// [rules.Unknown] if there is no total or some counts may be lost.
func (t *Total) Bounds(w *Window, last int64) (low, high int64) {
	if t == nil {
		return 0, rules.Unknown
	}
	low = t.Sum(last, int64(w.Panes))
	lacks := w.lacksOfAny(last).lacks
	if max(w.lost, w.unheard, t.before) > last-int64(w.Panes) || lacks == rules.Unknown {
		return low, rules.Unknown
	}
	return low, low + lacks + w.hidden.Sum(last, int64(w.Panes)) + w.held
}
