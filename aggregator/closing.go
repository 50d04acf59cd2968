package aggregator

import (
	"bytes"
	"slices"
	"time"
	"unsafe"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// moveTo brings a rule's windows to a time and closes the panes of which all
// counts have come. While one of them can change something, that is done pane by
// pane, however long nothing was heard: a window lets go of what is older than
// its clock and the grace, and a pane that is still to be closed may need that.
func (d *Detector) moveTo(r *ruleWatch, now, complete time.Time) {
	r.complete = complete
	ahead := now.Sub(complete)
	for {
		step := complete
		for _, v := range r.views {
			if v.closed == ring.Never || v.isIdle() && !d.account.follows(v) {
				continue
			}
			if next := v.Start(v.closed + 2); next.Before(step) {
				step = next
			}
		}
		for _, v := range r.views {
			at := step.Add(ahead)
			v.Advance(v.Index(at))
			if v.began == ring.Never {
				v.began = v.Index(at) + 1
			}
			if v.history != nil {
				v.history.AdvanceTo(at, v.Index(at))
			}
		}
		d.closePanes(r, step)
		if !step.Before(complete) {
			return
		}
	}
}

// closePanes closes all panes of a rule's windows of which all counts have come,
// in the order in which they ended.
func (d *Detector) closePanes(r *ruleWatch, complete time.Time) {
	for {
		var next *view
		for _, v := range r.views {
			over := v.Index(complete) - 1
			if v.closed == ring.Never || v.isIdle() && !d.account.follows(v) {
				v.closed = max(v.closed, over)
			}
			d.passOver(r, v, over)
			if v.closed < over && (next == nil || v.Start(v.closed+2).Before(next.Start(next.closed+2))) {
				next = v
			}
		}
		if next == nil {
			return
		}
		next.closed++
		d.closePane(r, next, next.closed)
	}
}

// passOver leaves out panes whose window is no longer kept whole, since counts of
// much later came before them. What cannot be looked at cools nothing.
func (d *Detector) passOver(r *ruleWatch, v *view, over int64) {
	kept := min(over, v.Now()-v.Kept()+int64(v.Panes)-1) // the newest pane of which that is so
	if v.Now() == ring.Never || v.closed >= kept {
		return
	}
	v.closed = kept
	for _, w := range r.hot {
		for _, t := range v.thresholds {
			w.marks[t.number].below = time.Time{}
		}
	}
}

// isIdle tells whether the pane that is closed next can change nothing.
func (v *view) isIdle() bool { return v.marked == 0 && (!v.comparesAll() || v.closed >= v.busy) }

// closePane looks at the window that ends with a pane.
func (d *Detector) closePane(r *ruleWatch, v *view, pane int64) {
	end := v.Start(pane + 1)
	var change hotparam.Change
	if v.comparesAll() && pane <= v.busy {
		change.Hot = d.compareAll(r, v, pane, end)
	}
	for _, w := range r.hot {
		for _, t := range v.thresholds {
			if w.marks[t.number].hot {
				d.stays(r, t, w, pane, end)
			}
		}
	}
	change.Cool = r.takeCooled(v, pane, end)
	if r.overlaps {
		d.attribute(r, v, pane, end, &change)
	}
	d.account.closePane(r, v, pane)
	d.publish(change)
}

// compareAll makes the keys hot that pass a threshold which compares keys with
// each other, or with what they were, by the window that ends with a pane, and returns
// those that are hot only now.
func (d *Detector) compareAll(r *ruleWatch, v *view, pane int64, end time.Time) []hotparam.Hot {
	var passed []int32
	for _, t := range v.thresholds {
		if t.Kind == hotparam.Top {
			t.rank(pane)
		}
	}
	v.Each(0, func(i int32) {
		if v.Sum(i, pane) >= v.least {
			passed = append(passed, i)
		}
	})
	slices.SortFunc(passed, func(a, b int32) int { return bytes.Compare(v.Name(a), v.Name(b)) })
	var hot []hotparam.Hot
	for _, i := range passed {
		w := v.watched(i)
		if w == nil {
			w = r.keys[string(v.Name(i))]
		}
		for _, t := range v.thresholds {
			if !v.looksAt(t) || w != nil && w.marks[t.number].hot {
				continue
			}
			low, _ := v.Bounds(i, pane)
			n := t.needs(r.exceptionOf(w, v.Name(i)), i, v.Name(i), pane)
			switch {
			case n.enter != hotparam.Unknown && low >= n.enter:
				var first bool
				if w, first = d.enter(r, t, w, entered{i: i, text: v.Name(i), hash: v.Hash(i), when: end, low: low, pane: pane, needs: n}); first && w.listed {
					hot = append(hot, r.describe(w, pane))
				}
			case v.AtMost(v.Hash(i), v.Name(i), pane) >= n.maybe:
				w = d.suspect(r, t, w, i, v.Name(i), v.Hash(i), end)
			}
		}
	}
	return hot
}

// exceptionOf is the exception that a key comes under; nil: none.
func (r *ruleWatch) exceptionOf(w *watched, text []byte) *hotparam.Exception {
	switch {
	case len(r.rule.Except) == 0:
		return nil
	case w != nil:
		return w.exception
	}
	return r.rule.Exception(asString(text))
}

// stays looks whether a threshold still holds a key hot when a pane is over.
func (d *Detector) stays(r *ruleWatch, t *threshold, w *watched, pane int64, end time.Time) {
	m, v := &w.marks[t.number], t.view
	// However short the hold, no window from before the one that made the key hot
	// can cool it.
	if end.Before(m.over) {
		return
	}
	i := w.at[v.number]
	_, high := v.Bounds(i, pane)
	n := t.needs(w.exception, i, v.Name(i), pane)
	m.learn(n)
	exit := n.exit
	if high == hotparam.Unknown || high >= exit || t.risesAgain(i, pane, exit) {
		m.below = time.Time{}
		return
	}
	if m.below.IsZero() {
		m.below = end
	}
	if end.Before(m.hold) || end.Sub(m.below) < t.CoolDown {
		return
	}
	d.leave(r, t, w, pane, end, exit)
}

// asString is a text without a copy, for calls that do not keep it.
func asString(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// risesAgain tells whether a window that ends later than pane last, as far as is
// known of it by now, is at the exit already: no further count need come to tell.
func (t *threshold) risesAgain(i int32, last, exit int64) bool {
	for pane := t.view.newest; pane > last; pane-- {
		if low, _ := t.view.Bounds(i, pane); low >= exit {
			return true
		}
	}
	return false
}
