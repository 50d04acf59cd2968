package aggregator

import (
	"bytes"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// coolDown cools w for t if w has been below t's exit for the cool-down, up to the window that
// ends with a pane.
func (d *Detector) coolDown(t *threshold, w *watched, pane int64) {
	m, v := &w.marks[t.number], t.view
	end := v.Start(pane + 1)
	// However short the hold, a window from before the one that made the key hot cannot cool
	// it.
	if end.Before(m.over) {
		return
	}
	_, high := w.bounds(v, pane)
	n := w.needs(t, pane)
	m.learn(n)
	exit := n.exit
	if high != published.Unknown {
		m.adoptedRatio = 0
	}
	if high == published.Unknown || high >= exit || w.risesAgain(v, pane, exit) {
		m.below = time.Time{}
		if high != published.Unknown {
			m.saved = nil
		}
		return
	}
	if m.below.IsZero() {
		m.below = end
		if m.saved != nil && m.saved.wasBelow(w, t, pane, exit) {
			m.below = m.saved.below
		}
		m.saved = nil
	}
	if end.Before(m.hold) || end.Sub(m.below) < t.CoolDown {
		return
	}
	d.unmarkHot(t, w, Verdict{At: end, Against: exit}, pane)
}

// risesAgain reports whether a window of v that ends after pane last has already reached the
// exit. Counts that are still to arrive would not change that.
func (w *watched) risesAgain(v *view, last, exit int64) bool {
	for pane := v.newest; pane > last; pane-- {
		if low, _ := w.bounds(v, pane); low >= exit {
			return true
		}
	}
	return false
}

// unmarkHot ends the state in which t holds w hot, by the window that ends with a pane, and
// reports the verdict.
func (d *Detector) unmarkHot(t *threshold, w *watched, verdict Verdict, pane int64) {
	verdict.Kind = Left
	d.report(w, t, verdict, pane)
	holder := w.holder
	if w.setMark(t, thresholdState{}); w.holder != holder {
		// Both are kept by the holder's window, and another holder's may have another length.
		w.origins, w.habit.windows = nil, [len(w.windows)]habitWindow{}
	}
}

// endHot forgets the state of a key that was hot.
func (w *watched) endHot() {
	w.listed, w.holder = false, nil
	w.keyFamily, w.habit, w.origins, w.top, w.meter = keyFamily{}, habit{}, nil, nil, nil
	w.release()
}

// takeCooled removes the keys that no threshold holds hot any longer from the hot keys. It
// returns those that were listed, with their counts in the window that ends with a pane. They
// cool at end.
func (r *ruleWatch) takeCooled(pane int64, end time.Time) (cooled []published.Hot) {
	kept := r.hot[:0]
	for _, w := range r.hot {
		if w.hotMarks > 0 {
			kept = append(kept, w)
			continue
		}
		if w.listed {
			h := w.describe(pane)
			h.Until = end
			cooled = append(cooled, h)
		}
		w.endHot()
	}
	clear(r.hot[len(kept):])
	r.hot = kept
	return cooled
}

// closePane judges the keys of a view by the window that ends with a pane, whose counts have
// all arrived, and publishes the changes.
func (d *Detector) closePane(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	var change published.Change
	if v.judgesAtEnd() && pane <= v.lastToJudge {
		change.Hot = d.compareAll(v, pane)
	}
	for _, w := range r.hot {
		for _, t := range v.thresholds {
			if w.marks[t.number].hot {
				d.coolDown(t, w, pane)
			}
		}
	}
	change.Cool = r.takeCooled(pane, end)
	if r.overlaps {
		d.attribute(v, pane, &change)
	}
	d.account.closePane(v, pane)
	d.publish(change)
}

// compareAll judges the keys of a view by the thresholds that compare keys with each other, or
// with their past, in the window that ends with a pane. It returns the keys that become hot and
// are listed.
func (d *Detector) compareAll(v *view, pane int64) (hot []published.Hot) {
	var passed []int32
	for _, t := range v.thresholds {
		if t.Kind == rules.Top {
			t.newest, t.earlier = t.rank(pane), nil
		}
	}
	v.Each(0, func(i int32) {
		if v.Sum(i, pane) >= v.least {
			passed = append(passed, i)
		}
	})
	slices.SortFunc(passed, func(a, b int32) int { return bytes.Compare(v.Name(a), v.Name(b)) })
	end := v.Start(pane + 1)
	for _, i := range passed {
		k := candidate{w: v.watched(i), text: v.Name(i), hash: v.Hash(i), when: end}
		if k.w == nil {
			k.w = v.watch.keys[string(k.text)]
		}
		for _, t := range v.thresholds {
			if !t.isJudgedAtEnd() || k.w.isHeldBy(t) {
				continue
			}
			low, _ := v.Bounds(i, pane)
			k.windowState = windowState{i, low, pane}
			if d.judge(t, &k) && k.w.listed {
				hot = append(hot, k.w.describe(pane))
			}
		}
	}
	return hot
}
