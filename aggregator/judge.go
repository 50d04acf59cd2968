package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
)

// judgeCount judges the key of c by the thresholds of v, and publishes it if it becomes hot. best
// is the key's standing in the window where it counts most.
func (d *Detector) judgeCount(v *view, c *decode.Count, best windowState) {
	w := v.watched(best.entry)
	if w == nil {
		if w = v.watch.keys[string(c.Text)]; w != nil {
			w.pin(v, best.entry)
		}
	}
	v.lastToJudge = max(v.lastToJudge, max(best.pane, v.Now())+int64(v.Panes))
	for _, t := range v.thresholds {
		if best.low < v.level || t.comparesKeys() || w.isHeldBy(t) {
			continue
		}
		k := candidate{windowState: best, w: w, text: c.Text, hash: c.Hash, when: v.sinceWhen(c, best.pane)}
		entered := d.judge(t, &k)
		if w = k.w; !entered || !w.listed {
			continue
		}
		h := w.describe(best.pane)
		if !h.Estimated {
			h.Low = best.low
		}
		h.Ratio = w.marks[t.number].ratio(best.low)
		d.publish(published.Change{Hot: []published.Hot{h}})
	}
	if w != nil && w.holder != nil && w.holder.view == v {
		w.recordCount(c)
	}
}

// sinceWhen returns the time at which c makes its key hot, in the window that ends with a pane.
// That is c's time or, if c was late and the key counts most in a later window, the start of
// that window's last pane.
func (v *view) sinceWhen(c *decode.Count, pane int64) time.Time {
	if v.PaneOf(c.When) > pane-int64(v.Panes) {
		return c.When
	}
	return v.Start(pane)
}

// judge decides whether t, which does not hold the key hot, makes it hot or suspect. It reports
// whether the key has just become hot.
func (d *Detector) judge(t *threshold, k *candidate) (entered bool) {
	v := t.view
	n := t.needs(v.watch.exceptionOf(k.w, k.text), k.entry, k.text, k.pane)
	switch {
	case n.enter != published.Unknown && k.low >= n.enter:
		return d.markHot(t, k, n.enter)
	case d.suspects.takes(v.watch, k.w) && v.AtMost(k.hash, k.text, k.pane) >= n.maybe:
		d.addSuspect(t, k)
	}
	return false
}

// judgeUncounted judges the key of c, which has no entry. The hidden counts of its cell may
// reach a threshold.
func (d *Detector) judgeUncounted(v *view, c *decode.Count) {
	if d.suspects.full(v.watch) {
		return
	}
	w := v.watch.keys[string(c.Text)]
	maximum := v.AtMost(c.Hash, c.Text, v.Now())
	for _, t := range v.thresholds {
		if maximum >= t.unseen(v.watch.exceptionOf(w, c.Text)) {
			d.addSuspect(t, &candidate{windowState: windowState{entry: -1}, w: w, text: c.Text, hash: c.Hash, when: c.When})
			return
		}
	}
}

// markHot marks the key hot by t, whose required count is need. It reports whether the key was
// not hot before.
func (d *Detector) markHot(t *threshold, k *candidate, need int64) (first bool) {
	if !k.watch(t.view) {
		d.noRoom++
		return false
	}
	v, w := t.view, k.w
	w.setMark(t, thresholdState{hot: true, need: need, over: v.Start(k.pane + 1), hold: k.when.Add(t.Hold)})
	first = w.hotMarks == 1
	if first {
		w.since, w.meter, w.skews = k.when, newMeter(d.cfg.RateSpan, k.when), skews{}
		v.watch.hot = append(v.watch.hot, w)
		d.suspects.drop(w)
		w.listed = true
		if v.watch.overlaps {
			w.hotSince = k.when
			w.recallWindows(v, k.pane)
		}
	}
	d.report(w, t, Verdict{Kind: Entered, At: k.when, Low: k.low, Against: need}, k.pane)
	if !first {
		return false
	}
	if v.watch.combines {
		if explainer := v.watch.explainer(w); explainer != nil {
			w.listed = false
			d.report(w, t, Verdict{Kind: verdictExplained, At: k.when, Low: k.low, By: explainer.text}, k.pane)
		}
	}
	w.published = listing{listed: w.listed}
	return true
}

// addSuspect adds the key to the suspects, as it may have reached t.
func (d *Detector) addSuspect(t *threshold, k *candidate) {
	if d.suspects.full(t.view.watch) || k.w != nil && (k.w.hotMarks > 0 || k.w.suspect != nil) {
		return
	}
	if k.watch(t.view) {
		d.suspects.add(k.w, t, k.when)
	}
}
