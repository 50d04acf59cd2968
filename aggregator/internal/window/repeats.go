package window

import (
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Repeats are, by group, the requests that are counted repeatedly when the counts of keys of
// overlapping rules are added up. Keys of one group have the same names, so a request counts
// for one of them, unless it repeats a parameter: "q=1&q=2" is a request of two. Instances
// count those beyond the first ([base.AppendAgain]).
type Repeats struct {
	panes   int64
	max     int
	byGroup map[string]*ring.Counts
	untold  int64 // newest pane with a count of a group that has no room
	before  int64 // counts of this pane and earlier ones are unknown
}

// repeatSize is the approximate memory of a group without its panes.
const repeatSize = 192

// NewRepeats returns repeats that keep a number of panes and hold at most budget bytes.
func NewRepeats(panes, budget int64) *Repeats {
	return &Repeats{before: never, panes: panes, max: int(max(1, budget/(repeatSize+8*panes))), byGroup: make(map[string]*ring.Counts), untold: ring.Never}
}

// Restart returns empty repeats of the same size.
func (r *Repeats) Restart() *Repeats {
	return &Repeats{before: never, panes: r.panes, max: r.max, byGroup: make(map[string]*ring.Counts), untold: ring.Never}
}

// Used returns the memory of the repeats in bytes.
func (r *Repeats) Used() int64 { return int64(len(r.byGroup)) * (repeatSize + 8*r.panes) }

// Add counts n under a name of [base.AppendAgain].
func (r *Repeats) Add(name []byte, pane, n int64) {
	group, ok := base.CutAgain(nil, name)
	if !ok {
		return
	}
	counts := r.byGroup[string(group)]
	if counts == nil {
		if len(r.byGroup) >= r.max {
			r.untold = max(r.untold, pane)
			return
		}
		fresh := ring.New(r.panes)
		counts = &fresh
		r.byGroup[string(group)] = counts
	}
	counts.Add(pane, n)
}

// Sweep forgets the groups that have no count left.
func (r *Repeats) Sweep(now int64) {
	for group, counts := range r.byGroup {
		if counts.Last <= now-r.panes {
			delete(r.byGroup, group)
		}
	}
}

// Most returns the most counts of a group's keys whose requests also count for another key of
// the group, in the window that ends with pane last. It returns [rules.Unknown] if some of them
// may not have arrived.
func (r *Repeats) Most(w *Window, group []byte, last int64) int64 {
	panes := int64(w.Panes)
	counts := r.byGroup[string(group)]
	lacks := w.lacksOfAny(last).lacks
	if counts == nil && r.untold > last-panes || max(w.lost, w.unheard, r.before) > last-panes || lacks == rules.Unknown {
		return rules.Unknown
	}
	maximum := lacks + w.hidden.Sum(last, panes) + w.held
	if counts != nil {
		maximum += counts.Sum(last, panes)
	}
	return maximum
}
