package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// keepHot moves the hot keys of a rule to r, which replaces it.
func (x *reload) keepHot(before, r *ruleWatch) {
	for _, w := range before.hot {
		if x.d.keepOne(w, before, r, x.now) {
			r.hot = append(r.hot, w)
			continue
		}
		if w.listed {
			h := x.as[w]
			h.Until = x.now
			x.cool = append(x.cool, h)
		}
		w.listed, w.by = false, nil
		w.family, w.habit, w.origins, w.top, w.meter = family{}, habit{}, nil, nil, nil
		w.release()
	}
	for _, v := range r.views {
		v.was = nil // release the view before it
	}
}

// leave ends the watch of a rule's keys. They are left to the detector that counts the rule
// from now on. They cool if there is no such rule, or its keys have other parameters.
func (x *reload) leave(r *ruleWatch) {
	for _, w := range r.hot {
		if !w.listed {
			continue
		}
		h := x.as[w]
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

// keepOne moves a hot key to r. It returns false if the key is no longer hot.
func (d *Detector) keepOne(w *watched, before, r *ruleWatch, now time.Time) bool {
	at, marks, by := w.at, w.marks, w.by
	w.rule, w.at, w.marks, w.hots, w.by = r, make([]int32, len(r.views)), make([]mark, len(r.thresholds)), 0, nil
	w.exception = nil
	if len(r.rule.Except) > 0 {
		w.exception = r.rule.Exception(w.text)
	}
	for _, v := range r.views {
		if w.at[v.number] = -1; v.was == nil {
			continue
		}
		if i := at[v.was.number]; i >= 0 {
			w.at[v.number] = i
			v.pinned++
		}
	}
	r.keys[w.text] = w
	if w.exception != nil && w.exception.Action == rules.Allow {
		return false
	}
	likes := r.likes(before)
	for _, t := range r.thresholds {
		if was := likes[t.number]; was != nil && marks[was.number].hot && w.at[t.view.number] >= 0 {
			m := marks[was.number]
			m.hold = m.hold.Add(t.Hold - was.Hold)
			w.setMark(t, m)
			if w.by == nil || was == by {
				w.by = t
			}
		}
	}
	if w.hots == 0 {
		w.holdByAll(now)
	}
	if w.hots == 0 {
		d.unnamed++
		return false
	}
	if w.by.view.was == nil || w.by.view.was != by.view {
		w.origins, w.habit.windows = nil, [len(w.windows)]habitWindow{}
	}
	return true
}

// holdByAll marks a key hot by all thresholds of its rule, until they know whether it is.
func (w *watched) holdByAll(now time.Time) {
	for _, v := range w.rule.views {
		pane := v.PaneOf(now)
		if !w.enrol(v, pane) {
			continue
		}
		for _, t := range v.thresholds {
			w.setMark(t, mark{hot: true, over: v.Start(pane + 1), hold: w.since.Add(t.Hold)})
			if w.by == nil {
				w.by = t
			}
		}
	}
}

// likes returns, by number, the threshold of before that each threshold of r replaces: one of
// the same kind and window, or nil. It prefers a jump over the same past.
func (r *ruleWatch) likes(before *ruleWatch) []*threshold {
	all, taken := make([]*threshold, len(r.thresholds)), make([]bool, len(before.thresholds))
	for _, anyPast := range [...]bool{false, true} {
		for _, t := range r.thresholds {
			at := slices.IndexFunc(before.thresholds, func(was *threshold) bool {
				return !taken[was.number] && was.Kind == t.Kind && was.Window() == t.Window() && (anyPast || was.Over == t.Over)
			})
			if all[t.number] == nil && at >= 0 {
				all[t.number], taken[at] = before.thresholds[at], true
			}
		}
	}
	return all
}
