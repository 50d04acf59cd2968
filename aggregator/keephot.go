package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// keepHot moves the hot keys of before to r, the watch that replaces it.
func (x *reload) keepHot(before, r *ruleWatch) {
	for _, w := range before.hot {
		if x.d.keepHotKey(w, before, r, x.now) {
			r.hot = append(r.hot, w)
			continue
		}
		if w.listed {
			h := x.states[w]
			h.Until = x.now
			x.cool = append(x.cool, h)
		}
		w.endHot()
	}
	for _, v := range r.views {
		v.was = nil // so that the replaced view can be freed
	}
}

// endWatch ends the watch of a rule that this detector no longer counts. Its hot keys go to the
// detector that counts the rule from now on. They cool if no rule has its id, or if that rule's
// keys have other parameters.
func (x *reload) endWatch(r *ruleWatch) {
	for _, w := range r.hot {
		if !w.listed {
			continue
		}
		h := x.states[w]
		if x.hasKeysOf(r.rule) {
			x.left = append(x.left, h)
			continue
		}
		h.Until = x.now
		x.cool = append(x.cool, h)
	}
}

// hasKeysOf reports whether there is a rule with the same keys as rule, in any unit.
func (x *reload) hasKeysOf(rule *rules.Rule) bool {
	rules := x.n.InOrder().Rules
	for i := range rules {
		if r := &rules[i]; r.ID == rule.ID {
			return len(r.Hot) > 0 && r.SameKeys(rule)
		}
	}
	return false
}

// keepHotKey moves a hot key to r. It returns false if the key is no longer hot.
func (d *Detector) keepHotKey(w *watched, before, r *ruleWatch, now time.Time) bool {
	entries, marks, holder := w.entries, w.marks, w.holder
	w.rule, w.entries, w.marks, w.hotMarks, w.holder = r, make([]int32, len(r.views)), make([]thresholdState, len(r.thresholds)), 0, nil
	w.exception = nil
	if len(r.rule.Except) > 0 {
		w.exception = r.rule.Exception(w.text)
	}
	for _, v := range r.views {
		if w.entries[v.number] = -1; v.was == nil {
			continue
		}
		if i := entries[v.was.number]; i >= 0 {
			w.entries[v.number] = i
			v.pinned++
		}
	}
	r.keys[w.text] = w
	if w.exception != nil && w.exception.Action == rules.Allow {
		return false
	}
	replaced := r.matchThresholds(before)
	for _, t := range r.thresholds {
		if was := replaced[t.number]; was != nil && marks[was.number].hot && w.entries[t.view.number] >= 0 {
			m := marks[was.number]
			m.hold = m.hold.Add(t.Hold - was.Hold) // as if t had held the key from the start
			if w.setMark(t, m); was == holder {
				w.holder = t
			}
		}
	}
	if w.hotMarks == 0 {
		w.holdByAll(now)
	}
	if w.hotMarks == 0 { // no window had room for the key
		d.noRoom++
		return false
	}
	if w.holder.view.was == nil || w.holder.view.was != holder.view {
		w.origins, w.habit.windows = nil, [len(w.windows)]habitWindow{}
	}
	return true
}

// holdByAll marks a key hot by all thresholds of its rule, so that it stays hot until a threshold
// has a whole window.
func (w *watched) holdByAll(now time.Time) {
	for _, v := range w.rule.views {
		pane := v.PaneOf(now)
		if !w.addEntry(v, pane) {
			continue
		}
		for _, t := range v.thresholds {
			w.setMark(t, thresholdState{hot: true, over: v.Start(pane + 1), hold: w.since.Add(t.Hold)})
		}
	}
}

// matchThresholds returns, by number, the threshold of before that each threshold of r
// replaces: one of the same kind and window, or nil. It prefers a jump over the same past.
func (r *ruleWatch) matchThresholds(before *ruleWatch) []*threshold {
	all, taken := make([]*threshold, len(r.thresholds)), make([]bool, len(before.thresholds))
	for _, anyPast := range [...]bool{false, true} {
		for _, t := range r.thresholds {
			index := slices.IndexFunc(before.thresholds, func(was *threshold) bool {
				return !taken[was.number] && was.Kind == t.Kind && was.Window() == t.Window() && (anyPast || was.Over == t.Over)
			})
			if all[t.number] == nil && index >= 0 {
				all[t.number], taken[index] = before.thresholds[index], true
			}
		}
	}
	return all
}
