package aggregator

import (
	"github.com/hotparam/hotparam"
)

// describe is a hot key with its counts in the window of the threshold that made
// it hot, that ends with a pane.
func (r *ruleWatch) describe(w *watched, pane int64) hotparam.Hot {
	t := w.by
	low, high := t.view.Bounds(w.at[t.view.number], pane)
	h := r.newHot(w)
	h.Cause, h.Low, h.High = t.cause(w.exception), low, high
	h.Rate = float64(low) / t.Rate.Per.Seconds()
	h.Ratio = w.marks[t.number].ratio(low)
	t.view.SetSeen(&h, w.at[t.view.number], pane)
	h.Since = w.since
	h.Usual, h.Spared = w.usual, w.spared
	h.Top = w.top
	return h
}

// present is a hot key with its present counts, and its highest ratio by all
// thresholds that hold it hot. What came within the lag is not in the window that
// is over, and what is on its way is not in the present one, so the window with the
// higher low count is used.
func (r *ruleWatch) present(w *watched) hotparam.Hot {
	v := w.by.view
	w.top = w.attribution()
	h := r.describe(w, v.closed)
	if present := r.describe(w, v.Now()); present.Low > h.Low {
		h = present
	}
	if w.by.Rate.Per > w.meter.length() { // a shorter window is of now itself
		if rate, ok := w.meter.perSecond(r.complete); ok {
			h.Rate = rate
		}
	}
	h.Ratio = r.ratio(w)
	return h
}

// newHot are what a key is held to.
func (r *ruleWatch) newHot(w *watched) hotparam.Hot {
	h := hotparam.Hot{Key: hotparam.Key{Rule: r.rule.ID, Text: w.text}}
	limit := r.rule.Limit
	if w.exception != nil && w.exception.Limit != nil {
		limit = w.exception.Limit
	}
	h.Limit, h.Burst, h.Mode = limit.Published()
	return h
}
