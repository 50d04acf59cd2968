package aggregator

import (
	"slices"

	"github.com/hotparam/hotparam"
)

// describe returns a hot key with its counts in the window, of the threshold that made it
// hot, that ends with a pane.
func (w *watched) describe(pane int64) hotparam.Hot {
	t := w.by
	low, high := w.bounds(t.view, pane)
	h := w.newHot()
	h.Cause, h.Also, h.Low, h.High = t.cause(w.exception), w.also(), low, high
	h.Rate = float64(low) / t.Rate.Per.Seconds()
	h.Ratio = w.marks[t.number].ratio(low)
	t.view.SetSeen(&h, w.at[t.view.number], pane)
	h.Since = w.since
	h.Usual, h.Spared = w.usual, w.spared
	h.Top = w.top
	return h
}

// present returns a hot key with its present counts, and its highest ratio by all thresholds
// that hold it hot. The window that is over lacks the counts of the lag, and the present one
// those that have not arrived, so present uses the one with the higher low count.
func (w *watched) present() hotparam.Hot {
	v := w.by.view
	w.top = w.attribution()
	h := w.describe(v.closed)
	if present := w.describe(v.Now()); present.Low > h.Low {
		h = present
	}
	if w.by.Rate.Per > w.meter.length() { // a shorter window is of now itself
		if rate, ok := w.meter.perSecond(w.rule.complete); ok {
			h.Rate = rate
		}
	}
	h.Ratio = w.ratio()
	return h
}

// newHot returns the key with the limit that applies to it.
func (w *watched) newHot() hotparam.Hot {
	rule := w.rule.rule
	h := hotparam.Hot{Key: hotparam.Key{Rule: rule.ID, Text: w.text}}
	limit := rule.Limit
	if w.exception != nil && w.exception.Limit != nil {
		limit = w.exception.Limit
	}
	h.Limit, h.Burst, h.Mode = limit.Published()
	return h
}

// attribution returns where the traffic of a hot key comes from: the previous value if
// nothing changed, and nil if nothing is known.
func (w *watched) attribution() *hotparam.Attribution {
	v := w.by.view
	from, to := v.Start(v.Now()-int64(v.Panes)+1), v.Start(v.Now()+1)
	long := to.Add(-max(minSpan, to.Sub(from)))
	a := hotparam.Attribution{
		Routes:    w.routes.top(long),
		Instances: w.origins.top(from),
		Callers:   w.callers.top(long),
		Explains:  w.explains,
	}
	switch {
	case len(a.Routes)+len(a.Instances)+len(a.Callers) == 0 && a.Explains == 0:
		return nil
	case w.top != nil && w.top.Explains == a.Explains && slices.Equal(w.top.Instances, a.Instances) &&
		slices.Equal(w.top.Routes, a.Routes) && slices.Equal(w.top.Callers, a.Callers):
		return w.top
	}
	return &a
}
