package aggregator

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
)

// skewRange bounds how much later, and how much earlier, counts may be than the time at which they
// are counted.
type skewRange struct{ later, earlier time.Duration }

// add widens the range by the skew of a count.
func (s *skewRange) add(skew time.Duration) {
	s.later, s.earlier = max(s.later, skew), max(s.earlier, -skew)
}

// ruleSkew records the skew of a rule's counts over the current and the previous span.
type ruleSkew struct {
	span              time.Duration
	from              time.Time
	current, previous skewRange
}

// minSkewSpan is the least span of a [ruleSkew]. Every sender reports within it.
const minSkewSpan = 30 * time.Second

// add records the skew of a count, which is not zero.
func (s *ruleSkew) add(c *decode.Count) {
	if s.from.IsZero() || c.When.Sub(s.from) >= s.span {
		s.previous = skewRange{}
		if c.When.Sub(s.from) < 2*s.span {
			s.previous = s.current
		}
		s.from, s.current = c.When, skewRange{}
	}
	s.current.add(c.Skew)
}

// rangeAt returns the range of the skews of the last span's counts, or of up to two spans.
func (s *ruleSkew) rangeAt(now time.Time) skewRange {
	if s.from.IsZero() || now.Sub(s.from) >= 2*s.span {
		return skewRange{}
	}
	return skewRange{max(s.current.later, s.previous.later), max(s.current.earlier, s.previous.earlier)}
}

// skews holds the numbers of a hot key's counts that may belong to another pane than the one they
// are counted in, since their senders' clocks are known only within bounds. Counts of other senders
// widen no bounds, so these stay narrow if one clock of many is off.
type skews struct {
	view   *view
	from   int64      // first pane whose counts were all recorded here
	newest int64      // newest pane
	panes  []skewPane // ring of panes; nil if no count has a skew
}

// skewPane holds the counts of a pane that may belong to later panes, or to earlier
// ones, and how many panes away.
type skewPane struct{ later, earlier, reachLater, reachEarlier int64 }

// record adds a count of the key to v.
func (s *skews) record(v *view, c *decode.Count) {
	if s.view != v {
		*s = skews{view: v, from: v.newest + 1, newest: ring.Never}
	}
	if c.Skew == 0 {
		return
	}
	size := v.Kept()
	pane := v.PaneOf(c.When)
	if s.panes == nil {
		s.panes, s.newest = make([]skewPane, size), pane
	}
	if pane-s.newest >= size {
		clear(s.panes)
		s.newest = pane
	}
	for s.newest < pane {
		s.newest++
		s.panes[ring.Slot(s.newest, size)] = skewPane{}
	}
	if s.newest-pane >= size {
		return // no window holds it
	}
	p, reach := &s.panes[ring.Slot(pane, size)], v.Index(c.When.Add(c.Skew))-pane
	if reach > 0 {
		p.later, p.reachLater = p.later+c.N, max(p.reachLater, reach)
	} else if reach < 0 {
		p.earlier, p.reachEarlier = p.earlier+c.N, max(p.reachEarlier, -reach)
	}
}

// around returns how many of the counts in the panes from first to last may belong to other panes,
// and how many counts in other panes may belong to these.
func (s *skews) around(first, last int64) (out, in int64) {
	size := int64(len(s.panes))
	for pane := s.newest; size > 0 && pane > s.newest-size && pane >= s.from; pane-- {
		p := &s.panes[ring.Slot(pane, size)]
		later, earlier := pane+p.reachLater, pane-p.reachEarlier
		if first <= pane && pane <= last {
			if later > last {
				out += p.later
			}
			if earlier < first {
				out += p.earlier
			}
			continue
		}
		if pane < first && later >= first {
			in += p.later
		}
		if pane > last && earlier <= last {
			in += p.earlier
		}
	}
	return out, in
}

// addSkew widens the bounds of a hot key in the window that ends with pane last by the counts near
// its ends that may belong outside, or inside. Skews are recorded only while the key is hot. In
// earlier panes, any count within the rule's widest skew of an end may be one.
func (w *watched) addSkew(h *published.Hot, last int64) {
	v := w.holder.view
	widest := w.rule.skew.rangeAt(v.Start(last))
	if widest == (skewRange{}) {
		return
	}
	first := last - int64(v.Panes) + 1
	unrecorded := int64(math.MaxInt64) // newest pane without recorded skews: all of them, unless set below
	var out, in int64
	if w.skews.view == v {
		unrecorded = w.skews.from - 1
		out, in = w.skews.around(first, last)
	}
	later, earlier := int64((widest.later+v.Pane-1)/v.Pane), int64((widest.earlier+v.Pane-1)/v.Pane)
	i := w.entries[v.number]
	part := func(from, to int64) int64 { return v.Part(i, from, min(to, unrecorded)) }
	out += part(max(first, last-later+1), last) + part(first, min(last, first+earlier-1))
	in += part(first-later, first-1) + part(last+1, last+earlier)
	h.Low = max(0, h.Low-out)
	if h.High != published.Unknown {
		h.High += in
	}
}
