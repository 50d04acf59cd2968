package aggregator

import (
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
)

// A parameter that is on nearly all requests, or whose count hardly changes, may always be
// above its threshold. It does not show the unusual key of the moment, and a limit on it would
// limit all users. Such a key is usual. A usual key explains only usual keys. It is spared,
// which means listed but not limited, while a listed key that is not usual is related to it
// (see kin.go), and such keys explain the excess of its count over its mean.
//
// The mean covers the last ten whole windows before the current one. A whole window lies
// between multiples of the window's length. Only hot keys have a mean, so counting costs
// nothing. The windows before a key became hot are known if they are still kept, and count as 0
// otherwise. So a key becomes usual by its mean only if the excess is certainly below half a
// threshold. It is no longer usual when a whole threshold of the excess is not explained. The
// margin keeps it from alternating by chance.

// usualShare of usualOf is the part of its route's requests that makes a key usual: 9 of 10.
const usualShare, usualOf = 9, 10

// recallWindows records the whole windows of a key that are still kept when it becomes hot in a
// pane. The newest of them has ended by then, and may overlap the window that ends with the
// pane.
func (w *watched) recallWindows(v *view, pane int64) {
	panes := int64(v.Panes)
	for end := v.wholeBefore(pane + panes); end-panes+1 > v.Now()-v.Kept() && end-panes+1 >= v.began && v.began != ring.Never; end -= panes {
		w.learnWindow(v, end)
	}
}

// learnWindow records the window that ends with a pane.
func (w *watched) learnWindow(v *view, end int64) {
	i := w.entries[v.number]
	if i < 0 {
		return
	}
	low, high := v.Bounds(i, end)
	*w.window(v, end) = habitWindow{seen: true, end: end, low: low, high: high, byShare: w.isOnNearlyAll(v, end, low)}
}

// window returns the place of the whole window that ends with a pane.
func (h *habit) window(v *view, end int64) *habitWindow {
	number := base.FloorDiv(end, int64(v.Panes))
	return &h.windows[ring.Slot(number, int64(len(h.windows)))]
}

// isWhole reports whether the window that ends with a pane lies between multiples of its
// length.
func (v *view) isWhole(end int64) bool {
	return base.FloorDiv(end+1, int64(v.Panes))*int64(v.Panes) == end+1
}

// wholeBefore returns the last pane of the newest whole window before the one that ends with a
// pane.
func (v *view) wholeBefore(end int64) int64 {
	panes := int64(v.Panes)
	return base.FloorDiv(end-panes+1, panes)*panes - 1
}

// isOnNearlyAll reports whether low, the key's count, is certainly nine tenths of the route's
// requests or more, in the window that ends with a pane.
func (w *watched) isOnNearlyAll(v *view, end, low int64) bool {
	high := v.totals.High(v.Window, []byte(w.text), end)
	return high != published.Unknown && low > 0 && low <= high && low*usualOf >= high*usualShare
}

// mean is the mean of a key's ten whole windows before the one that ends with a pane, or of as
// many as were seen.
type mean struct {
	known     bool // whether at least one window was seen
	low, high float64
	highKnown bool
	byShare   bool // whether the key was on nine tenths of the route's requests, in each window that had some
}

// mean returns the mean of the ten whole windows before the one that ends with a pane, or of as
// many as were seen.
func (w *watched) mean(v *view, pane int64) (m mean) {
	panes, began := int64(v.Panes), v.totals.Began([]byte(w.text))
	var low, high, seen, shared int64
	m.highKnown, m.byShare = true, true
	end := v.wholeBefore(pane)
	for range decode.BaselineWindows {
		if v.began == ring.Never || end-panes+1 < v.began {
			break
		}
		seen++
		switch k := w.window(v, end); {
		case k.seen && k.end == end:
			low += k.low
			high += k.high
			m.highKnown = m.highKnown && k.high != published.Unknown
			if end >= began {
				m.byShare = m.byShare && k.byShare
				shared++
			}
		default:
			m.highKnown = false
			m.byShare = m.byShare && end < began // the route had no requests
		}
		end -= panes
	}
	if seen == 0 {
		return mean{}
	}
	m.known, m.byShare = true, m.byShare && shared > 0
	m.low, m.high = float64(low)/float64(seen), float64(high)/float64(seen)
	return m
}

// judgeUsual decides which hot keys of a rule are usual, by the window of v that ends with a
// pane. It judges the keys whose threshold has this view.
func (d *Detector) judgeUsual(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	for _, w := range r.hot {
		if w.holder.view != v {
			continue
		}
		if v.isWhole(pane) {
			w.learnWindow(v, pane)
		}
		w.byShare = false
		if r.parse(w) {
			low, _ := w.bounds(v, pane)
			w.byShare = w.isOnNearlyAll(v, pane, low)
		}
	}
	r.findParts(v, pane)
	d.judgeUnusual(v, pane)
	for _, byShare := range []bool{true, false} { // a key that is usual by its share takes precedence
		for _, w := range r.hot {
			if w.holder.view == v && !w.usual && w.isOver() && r.parse(w) && r.becomesUsual(w, pane, byShare) && !r.isBesideUsual(w, byShare) {
				w.usual, w.usualSince = true, end
				d.report(w, w.holder, Verdict{Kind: verdictUsual, At: end}, pane)
			}
		}
	}
}

// becomesUsual reports whether a hot key is usual now, by its share or by its mean. A key that
// would not be hot without related hot keys is not usual, as no other user would be limited.
func (r *ruleWatch) becomesUsual(w *watched, pane int64, byShare bool) bool {
	v := w.holder.view
	low, high := w.bounds(v, pane)
	n := w.needs(w.holder, pane)
	m := w.mean(v, pane)
	switch {
	case n.enter == published.Unknown || low-w.unusualPart() < n.enter:
		return false
	case byShare && m.known:
		return w.byShare && m.byShare
	case byShare: // no window before the current one was seen
		return w.byShare && v.began != ring.Never && pane-int64(v.Panes)+1 >= v.began
	}
	return m.known && high != published.Unknown && 2*(float64(high)-m.low) < float64(n.enter)
}

// isBesideUsual reports whether a key became hot when a related key was already usual. Then the
// key is the unusual one, until it cools, however long it lasts. If both keys are steady, the
// one on nearly all requests is the usual one.
func (r *ruleWatch) isBesideUsual(w *watched, byShare bool) (beside bool) {
	r.eachUsualKin(w, func(u *watched) {
		if u.byShare && !byShare || u.usualSince.Before(w.hotSince) {
			beside = true
		}
	})
	return beside
}

// judgeUnusual decides which usual keys are no longer usual, by the keys that are listed so
// far. A key that would not be hot without related unusual keys is no longer usual. Neither is
// a key whose excess over its mean is a threshold more than related listed keys explain, unless
// it is on nearly all requests.
func (d *Detector) judgeUnusual(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	r.findListedKin(v, pane)
	for _, w := range r.hot {
		if w.holder.view != v || !w.usual {
			continue
		}
		_, high := w.bounds(v, pane)
		n := w.needs(w.holder, pane)
		excess, known := w.excess(v, pane)
		switch {
		case high == published.Unknown || n.enter == published.Unknown:
			continue
		case high-w.unusualPart() < n.exit:
		case known && excess >= float64(n.enter) && !w.byShare:
		default:
			continue
		}
		w.usual, w.exceeds = false, false
		d.report(w, w.holder, Verdict{Kind: verdictUnusual, At: end}, pane)
	}
}

// judgeSpared decides which usual keys are spared, after the decision on the listed keys. A key
// whose counts are unknown keeps its state.
func (d *Detector) judgeSpared(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	r.findListedKin(v, pane)
	for _, w := range r.hot {
		if w.holder.view != v {
			continue
		}
		spared := w.usual && r.isSpared(w, pane)
		if spared == w.spared {
			continue
		}
		w.spared = spared
		decision := verdictUnspared
		if spared {
			decision = verdictSpared
		}
		d.report(w, w.holder, Verdict{Kind: decision, At: end}, pane)
	}
}

func (r *ruleWatch) isSpared(w *watched, pane int64) bool {
	v := w.holder.view
	_, high := w.bounds(v, pane)
	n := w.needs(w.holder, pane)
	if high == published.Unknown || n.enter == published.Unknown {
		return w.spared
	}
	if excess, known := w.excess(v, pane); known {
		w.exceeds = excess >= float64(n.enter) || w.exceeds && 2*excess >= float64(n.enter)
	}
	return w.related && !w.exceeds
}

// excess returns a lower bound of the amount by which a key's count exceeds its mean, without
// the part that related listed hot keys can explain.
func (w *watched) excess(v *view, pane int64) (excess float64, known bool) {
	m := w.mean(v, pane)
	if !m.highKnown || w.explained == published.Unknown {
		return 0, false
	}
	low, _ := w.bounds(v, pane)
	return float64(max(0, low-w.explained)) - m.high, true
}
