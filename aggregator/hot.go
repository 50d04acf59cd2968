package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// describe returns a hot key with its counts in the window that ends with a pane, for the
// threshold that made it hot. It does not adjust the counts for clock errors, since a change
// has the counts that decided.
func (w *watched) describe(pane int64) published.Hot {
	t := w.holder
	low, high := w.bounds(t.view, pane)
	h := w.newHot()
	h.Cause, h.Also, h.Low, h.High = t.cause(w.exception), w.also(), low, high
	h.Rate = float64(low) / t.Rate.Per.Seconds()
	h.Ratio = w.marks[t.number].ratio(low)
	t.view.SetSeen(&h, w.entries[t.view.number], pane)
	h.Since = w.since
	h.Usual, h.Spared = w.usual, w.spared
	h.Top = w.top
	return h
}

// describeNow returns a hot key with its current counts, and its highest ratio by all thresholds
// that hold it hot. The bounds include the counts that clock errors may have moved over the
// window's ends. The newest window that has ended lacks the counts of the lag, and the current
// one those that have not arrived, so describeNow uses the one with the higher low count. After a
// loss it prefers the ended window, if only that one has clear bounds and the count that is
// needed.
func (w *watched) describeNow() published.Hot {
	v := w.holder.view
	w.top = w.attribution()
	pane := w.clearestPane()
	h := w.describe(pane)
	if present := w.describe(v.Now()); present.Low > h.Low && (w.isClear(present.Low, present.High) || !w.isClear(h.Low, h.High) || h.Low < w.need() || !v.HasLosses()) {
		h, pane = present, v.Now()
	}
	w.addSkew(&h, pane)
	if w.holder.Rate.Per > w.meter.length() { // the rate of a shorter window is current itself
		if rate, ok := w.meter.perSecond(w.rule.complete); ok {
			h.Rate = rate
		}
	}
	h.Ratio = w.ratio()
	return h
}

// clearFor bounds how much earlier than the newest ended window the window that describeNow uses
// may have ended. Lost counts belong to a short, known time. Windows that begin or end within
// it have wider bounds than windows a few panes before.
const clearFor = 500 * time.Millisecond

// clearestPane returns the last pane of the newest ended window that has clear bounds, within
// clearFor. If none has, it returns that of the newest ended window.
func (w *watched) clearestPane() int64 {
	v := w.holder.view
	if !v.HasLosses() {
		return v.closed
	}
	from := v.Start(v.closed + 1).Add(-clearFor)
	for pane := v.closed; !v.Start(pane + 1).Before(from); pane-- {
		if !v.Keeps(v.Start(pane-int64(v.Panes)+1)) || pane < v.closed && v.Start(pane+1).Before(w.since) {
			break
		}
		if low, high := w.bounds(v, pane); w.isClear(low, high) {
			return pane
		}
	}
	return v.closed
}

// isClear reports whether the bounds of a hot key differ by at most a tenth of the count that
// it needed.
func (w *watched) isClear(low, high int64) bool {
	return high != published.Unknown && high-low <= w.need()/10
}

// need returns the count that a hot key needed, as last known, or the threshold's count if it
// was never known.
func (w *watched) need() int64 {
	if need := w.marks[w.holder.number].need; need > 0 {
		return need
	}
	return w.holder.Rate.N
}

// newHot returns the key with the limit that applies to it.
func (w *watched) newHot() published.Hot {
	rule := w.rule.rule
	h := published.Hot{Key: rules.Key{Rule: rule.ID, Text: w.text}}
	limit := rule.Limit
	if w.exception != nil && w.exception.Limit != nil {
		limit = w.exception.Limit
	}
	if h.Limit, h.Burst, h.Mode = limit.Published(); !h.Limit.IsZero() {
		h.Scope = rule.ScopeOf(limit)
	}
	return h
}

// attribution returns the origins of a hot key's traffic. It returns the previous value if
// nothing changed, and nil if no origins are known.
func (w *watched) attribution() *published.Attribution {
	v := w.holder.view
	from, to := v.Start(v.Now()-int64(v.Panes)+1), v.Start(v.Now()+1)
	long := to.Add(-max(published.MinOriginSpan, to.Sub(from)))
	a := published.Attribution{
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

// ratio returns a count divided by the count that the threshold needed. If the need is unknown,
// as for a key that another detector found, it is 1, since the key is hot. While such a key's
// count is only known in part, the ratio is at least its ratio there.
func (m *thresholdState) ratio(count int64) float64 {
	if m.need == 0 {
		return max(1, m.adoptedRatio)
	}
	return max(float64(count)/float64(m.need), m.adoptedRatio)
}

// learn records the count that a threshold needed in a window that has ended. It keeps the
// previous one if that is unknown after a loss.
func (m *thresholdState) learn(n needs) {
	if n.enter > 0 {
		m.need = n.enter
	}
}

// ratio returns the highest ratio of the thresholds that hold a key hot, by its current counts
// and the counts that were needed in the newest ended window.
func (w *watched) ratio() (highest float64) {
	for _, t := range w.rule.thresholds {
		m, v := &w.marks[t.number], t.view
		if !m.hot {
			continue
		}
		over, _ := w.bounds(v, v.closed)
		now, _ := w.bounds(v, v.Now())
		highest = max(highest, m.ratio(max(over, now)))
	}
	return highest
}
