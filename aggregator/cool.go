package aggregator

import (
	"time"

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
	if high != rules.Unknown {
		m.before = 0
	}
	if high == rules.Unknown || high >= exit || w.risesAgain(v, pane, exit) {
		m.below = time.Time{}
		if high != rules.Unknown {
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
// reports left.
func (d *Detector) unmarkHot(t *threshold, w *watched, left Verdict, pane int64) {
	left.Kind = Left
	d.report(w, t, left, pane)
	w.setMark(t, mark{})
	if w.hotMarks > 0 && w.holder == t {
		for _, other := range w.rule.thresholds {
			if w.marks[other.number].hot {
				w.holder, w.origins, w.habit.windows = other, nil, [len(w.windows)]habitWindow{}
				break
			}
		}
	}
}

// takeCooled removes the keys that no threshold holds hot any longer from the hot keys. It
// returns those that were listed, with their counts in the window that ends with a pane. They
// cool at end.
func (r *ruleWatch) takeCooled(pane int64, end time.Time) (cooled []rules.Hot) {
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
		w.listed, w.holder = false, nil
		w.family, w.habit, w.origins, w.top, w.meter = family{}, habit{}, nil, nil, nil
		w.release()
	}
	clear(r.hot[len(kept):])
	r.hot = kept
	return cooled
}
