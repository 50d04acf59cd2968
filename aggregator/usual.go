package aggregator

import (
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
	"github.com/hotparam/hotparam/internal/floor"
)

// A parameter that is on nearly all requests, or whose count is what it always
// is, may be above its threshold for ever. It says nothing of what is unusual
// now, and a limit on it is one on everybody. Such a key is usual. It hides no
// key that is not usual itself; and it is not limited while hot keys that are
// listed beside it explain what its count is above its mean.
//
// The mean is that of the last ten windows that lie whole between multiples of
// the window's length and before the present one. Only hot keys have it, so that
// counting costs nothing: what a key counted before it was hot is known of the
// windows that are kept still, and of others taken for 0. So a key is usual only
// if it is so for certain, by half a threshold at most; it is so no longer when a
// whole threshold is not explained, so that chance does not flap it.

// usualShare is the part of its route's requests that makes a key usual: 9 of 10.
const usualShare, usualOf = 9, 10

// recall notes what is kept of a key's windows before it became hot, as of a
// window that ends with a pane.
func (w *watched) recall(v *view, pane int64) {
	panes := int64(v.Panes)
	for end := v.wholeBefore(pane); end-panes+1 > v.Now()-v.Kept() && end-panes+1 >= v.began && v.began != ring.Never; end -= panes {
		w.learnWindow(v, end)
	}
}

// learnWindow notes the window that ends with a pane.
func (w *watched) learnWindow(v *view, end int64) {
	i := w.at[v.number]
	if i < 0 {
		return
	}
	low, high := v.Bounds(i, end)
	*w.window(v, end) = habitWindow{seen: true, end: end, low: low, high: high, byShare: w.isOnNearlyAll(v, end, low)}
}

// window is the place of the whole window that ends with a pane.
func (h *habit) window(v *view, end int64) *habitWindow {
	number := floor.Div(end, int64(v.Panes))
	return &h.windows[ring.Slot(number, int64(len(h.windows)))]
}

// isWhole reports whether the window that ends with a pane lies between multiples
// of its length.
func (v *view) isWhole(end int64) bool {
	return floor.Div(end+1, int64(v.Panes))*int64(v.Panes) == end+1
}

// wholeBefore is the last pane of the newest whole window before the one that
// ends with a pane.
func (v *view) wholeBefore(end int64) int64 {
	panes := int64(v.Panes)
	return floor.Div(end-panes+1, panes)*panes - 1
}

// isOnNearlyAll reports whether low counts are nine tenths of the route's requests
// for certain, in the window that ends with a pane.
func (w *watched) isOnNearlyAll(v *view, end, low int64) bool {
	_, high := v.totals.Of([]byte(w.text)).Bounds(v.Window, end)
	return high != hotparam.Unknown && low > 0 && low <= high && low*usualOf >= high*usualShare
}

// mean is what is known of a key's ten windows before the one that ends with a
// pane, or of as many as were seen.
type mean struct {
	known     bool // at least one was seen
	low, high float64
	highKnown bool
	byShare   bool // nine tenths of the route's requests in each that had some
}

func (w *watched) mean(v *view, pane int64) (m mean) {
	panes, began := int64(v.Panes), int64(ring.Never)
	if t := v.totals.Of([]byte(w.text)); t != nil {
		began = t.Began()
	}
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
			m.highKnown = m.highKnown && k.high != hotparam.Unknown
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

// judgeUsual decides which of a rule's hot keys are usual, and which of these are
// spared, by the window of a view that ends with a pane.
func (d *Detector) judgeUsual(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	for _, w := range r.hot {
		if w.by.view != v {
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
	for _, byShare := range []bool{true, false} { // one that is so by its share goes before
		for _, w := range r.hot {
			if w.by.view == v && !w.usual && w.isOver() && r.parse(w) && r.becomesUsual(w, pane, byShare) && !r.isBesideUsual(w, byShare) {
				w.usual, w.usualSince = true, end
				d.report(w, w.by, Verdict{Kind: Usual, At: end}, pane)
			}
		}
	}
}

// becomesUsual reports whether a hot key is usual now, by its share or by its mean.
// One of which nothing is left without hot keys beside it is not, for there is
// nobody to protect.
func (r *ruleWatch) becomesUsual(w *watched, pane int64, byShare bool) bool {
	v := w.by.view
	low, high := w.bounds(v, pane)
	n := w.needs(w.by, pane)
	m := w.mean(v, pane)
	switch {
	case n.enter == hotparam.Unknown || low-w.unusualPart() < n.enter:
		return false
	case byShare && m.known:
		return w.byShare && m.byShare
	case byShare: // nothing was seen before the present window
		return w.byShare && v.began != ring.Never && pane-int64(v.Panes)+1 >= v.began
	}
	return m.known && high != hotparam.Unknown && 2*(float64(high)-m.low) < float64(n.enter)
}

// isBesideUsual reports whether a key became hot beside one that was usual
// before: then it is what is unusual, until it cools, however long it lasts. Of
// keys that are steady alike, one on nearly all requests is the usual one.
func (r *ruleWatch) isBesideUsual(w *watched, byShare bool) (beside bool) {
	r.eachUsualKin(w, func(u *watched) {
		if u.byShare && !byShare || u.usualSince.Before(w.hotSince) {
			beside = true
		}
	})
	return beside
}

// judgeUnusual decides which usual keys are so no longer, by what is listed before
// this is decided anew: those that exceed their mean by a threshold which hot keys
// beside them do not explain, unless they are on nearly all requests; and those
// of which nothing is left without such keys.
func (d *Detector) judgeUnusual(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	r.findListedKin(v, pane)
	for _, w := range r.hot {
		if w.by.view != v || !w.usual {
			continue
		}
		_, high := w.bounds(v, pane)
		n := w.needs(w.by, pane)
		excess, known := w.excess(v, pane)
		switch {
		case high == hotparam.Unknown || n.enter == hotparam.Unknown:
			continue
		case high-w.unusualPart() < n.exit:
		case known && excess >= float64(n.enter) && !w.byShare:
		default:
			continue
		}
		w.usual, w.exceeds = false, false
		d.report(w, w.by, Verdict{Kind: Unusual, At: end}, pane)
	}
}

// judgeSpared decides which usual keys are spared, once it is known which keys are
// listed. What cannot be told changes nothing.
func (d *Detector) judgeSpared(v *view, pane int64) {
	r, end := v.watch, v.Start(pane+1)
	r.findListedKin(v, pane)
	for _, w := range r.hot {
		if w.by.view != v {
			continue
		}
		spared := w.usual && r.isSpared(w, pane)
		if spared == w.spared {
			continue
		}
		w.spared = spared
		decision := Unspared
		if spared {
			decision = Spared
		}
		d.report(w, w.by, Verdict{Kind: decision, At: end}, pane)
	}
}

func (r *ruleWatch) isSpared(w *watched, pane int64) bool {
	v := w.by.view
	_, high := w.bounds(v, pane)
	n := w.needs(w.by, pane)
	if high == hotparam.Unknown || n.enter == hotparam.Unknown {
		return w.spared
	}
	if excess, known := w.excess(v, pane); known {
		w.exceeds = excess >= float64(n.enter) || w.exceeds && 2*excess >= float64(n.enter)
	}
	return w.related && !w.exceeds
}

// excess is by how much a key's count is above its mean for certain, without what
// hot keys that are listed beside it can explain.
func (w *watched) excess(v *view, pane int64) (excess float64, known bool) {
	m := w.mean(v, pane)
	if !m.highKnown || w.explained == hotparam.Unknown {
		return 0, false
	}
	low, _ := w.bounds(v, pane)
	return float64(max(0, low-w.explained)) - m.high, true
}
