package aggregator

import (
	"bytes"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// totals are the requests of each route, whatever their parameters, that keys of
// which a request makes several are parts of. Instances count them
// ([hotparam.Total]), so they cost the ingest a line a route and flush. A route
// that has no room, or of which instances of earlier versions count no total, has
// none, and what part of it a key is cannot be told.
type totals struct {
	panes   int64
	max     int
	byRoute map[string]*total
}

type total struct {
	ring.Counts
	began int64 // the first pane with a count
}

// totalSize is about what a total takes besides its panes.
const totalSize = 192

func newTotals(panes, budget int64) *totals {
	return &totals{panes: panes, max: int(max(1, budget/(totalSize+8*panes))), byRoute: make(map[string]*total)}
}

func (t *totals) restart() *totals {
	return &totals{panes: t.panes, max: t.max, byRoute: make(map[string]*total)}
}

func (t *totals) used() int64 { return int64(len(t.byRoute)) * (totalSize + 8*t.panes) }

// add counts n of the total with this text.
func (t *totals) add(text []byte, pane, n int64) {
	route := text[:len(text)-len(hotparam.Total)]
	of := t.byRoute[string(route)]
	if of == nil {
		if len(t.byRoute) >= t.max {
			return
		}
		of = &total{ring.New(t.panes), pane}
		t.byRoute[string(route)] = of
	}
	of.began = min(of.began, pane)
	of.Counts.Add(pane, n)
}

// of returns the total of a key's route; nil: it has none.
func (t *totals) of(text []byte) *total {
	return t.byRoute[string(text[:bytes.LastIndexByte(text, '?')+1])]
}

// sweep forgets the routes that have no count left.
func (t *totals) sweep(now int64) {
	for route, of := range t.byRoute {
		if of.Last <= now-t.panes {
			delete(t.byRoute, route)
		}
	}
}

// bounds are the low and high total in the window that ends with pane last; high
// is [hotparam.Unknown] if there is no total or something was lost.
func (t *total) bounds(w *window, last int64) (low, high int64) {
	if t == nil {
		return 0, hotparam.Unknown
	}
	low = t.Sum(last, int64(w.Panes))
	lacks := w.lacksOfAny(last).lacks
	if w.lost > last-int64(w.Panes) || lacks == hotparam.Unknown {
		return low, hotparam.Unknown
	}
	return low, low + lacks + w.hidden.Sum(last, int64(w.Panes)) + w.held
}
