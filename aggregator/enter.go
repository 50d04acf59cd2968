package aggregator

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
)

// reach is an entry that a count was added to, its highest count of the windows
// with that pane, and the pane where that window ends.
type reach struct {
	i        int32
	low, end int64
}

// reached looks at a key whose count is near a threshold, or that is hot or
// suspect.
func (d *Detector) reached(r *ruleWatch, v *view, c *decode.Count, at reach) {
	w := v.watched(at.i)
	if w == nil {
		if at.low < v.level {
			return
		}
		if w = r.keys[string(c.Text)]; w != nil {
			r.pin(v, at.i, w)
		}
	}
	v.busy = max(v.busy, max(at.end, v.Now())+int64(v.Panes))
	if w != nil && w.by != nil && w.by.view == v {
		w.recordCount(c)
	}
	for _, t := range v.thresholds {
		if t.Kind == hotparam.Share || t.Kind == hotparam.Top || w != nil && w.marks[t.number].hot || at.low < v.level {
			continue
		}
		n := t.needs(r.exceptionOf(w, c.Text), at.i, c.Text, at.end)
		if n.enter != hotparam.Unknown && at.low >= n.enter {
			var first bool
			w, first = d.enter(r, t, w, entered{i: at.i, text: c.Text, hash: c.Hash, when: c.When, low: at.low, pane: at.end, needs: n})
			if first {
				w.recordCount(c)
			}
			if first && w.listed {
				h := r.describe(w, at.end)
				if !h.Estimated {
					h.Low = at.low
				}
				h.Ratio = w.marks[t.number].ratio(at.low)
				d.publisher.Publish(hotparam.Change{Hot: []hotparam.Hot{h}})
			}
		} else if (w == nil || w.suspect == nil) && !d.suspects.full(r) {
			if v.AtMost(c.Hash, c.Text, at.end) >= n.maybe {
				w = d.suspect(r, t, w, at.i, c.Text, c.Hash, c.When)
			}
		}
	}
}

// entered is a key that passed a threshold.
type entered struct {
	i     int32
	text  []byte
	hash  uint64
	when  time.Time
	low   int64
	pane  int64 // where the window ends
	needs needs
}

// enter makes a key hot by a threshold. first is true if no other had made it so.
func (d *Detector) enter(r *ruleWatch, t *threshold, w *watched, e entered) (_ *watched, first bool) {
	v := t.view
	fresh := w
	if fresh == nil {
		fresh = r.newWatched(e.text, e.hash)
	}
	if !r.pin(v, e.i, fresh) {
		d.unnamed++
		return w, false
	}
	w = fresh
	m := &w.marks[t.number]
	*m = mark{hot: true, need: e.needs.enter, over: v.Start(e.pane + 1), hold: e.when.Add(t.Hold)}
	v.marked++
	w.hots++
	first = w.hots == 1
	if first {
		w.since, w.by, w.meter = e.when, t, newMeter(d.rateSpan, e.when)
		r.hot = append(r.hot, w)
		d.suspects.drop(w)
		w.listed = true
		if r.overlaps {
			w.hotSince = e.when
			w.recall(v, e.pane)
		}
	}
	d.report(r, w, t, Verdict{Kind: Entered, At: e.when, Low: e.low, Against: e.needs.enter}, e.pane)
	if first && r.combines {
		if by := r.explainer(w); by != nil {
			w.listed = false
			d.report(r, w, t, Verdict{Kind: Explained, At: e.when, Low: e.low, By: by.text}, e.pane)
		}
	}
	if first {
		w.published = listing{listed: w.listed}
	}
	return w, first
}

// leave ends that a key is hot by a threshold.
func (d *Detector) leave(r *ruleWatch, t *threshold, w *watched, pane int64, end time.Time, exit int64) {
	low, _ := t.view.Bounds(w.at[t.view.number], pane)
	d.report(r, w, t, Verdict{Kind: Left, At: end, Low: low, Against: exit}, pane)
	w.marks[t.number] = mark{}
	t.view.marked--
	w.hots--
	if w.hots > 0 && w.by == t {
		for _, other := range r.thresholds {
			if w.marks[other.number].hot {
				w.by, w.origins, w.habit.windows = other, nil, [len(w.windows)]habitWindow{}
				break
			}
		}
	}
}

// takeCooled takes the keys that no threshold holds hot any longer from those
// that are, and returns those that were listed, as of the window that ends with
// a pane of a view.
func (r *ruleWatch) takeCooled(v *view, pane int64, end time.Time) (cooled []hotparam.Hot) {
	kept := r.hot[:0]
	for _, w := range r.hot {
		if w.hots > 0 {
			kept = append(kept, w)
			continue
		}
		if w.listed {
			h := r.describe(w, pane)
			h.Until = end
			cooled = append(cooled, h)
		}
		w.listed, w.by = false, nil
		w.family, w.habit, w.origins, w.top, w.meter = family{}, habit{}, nil, nil, nil
		r.release(w)
	}
	clear(r.hot[len(kept):])
	r.hot = kept
	return cooled
}
