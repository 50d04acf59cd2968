package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// skewRange is by how much counts may be later and earlier than they are placed, at most.
type skewRange struct{ later, earlier time.Duration }

// add widens the range by the skew of a count.
func (s *skewRange) add(skew time.Duration) {
	s.later, s.earlier = max(s.later, skew), max(s.earlier, -skew)
}

// ruleSkew is the recent range of a rule's counts: of the current span and of the previous one.
type ruleSkew struct {
	span           time.Duration
	from           time.Time
	present, spent skewRange
}

// minSkewSpan is the least span of a [ruleSkew], so that each sender is heard in it.
const minSkewSpan = 30 * time.Second

// add records the skew of a count, which is not zero.
func (s *ruleSkew) add(c *decode.Count) {
	if s.from.IsZero() || c.When.Sub(s.from) >= s.span {
		s.spent = skewRange{}
		if c.When.Sub(s.from) < 2*s.span {
			s.spent = s.present
		}
		s.from, s.present = c.When, skewRange{}
	}
	s.present.add(c.Skew)
}

// rangeAt returns the range of the counts that were placed up to a span before an instant.
func (s *ruleSkew) rangeAt(now time.Time) skewRange {
	if s.from.IsZero() || now.Sub(s.from) >= 2*s.span {
		return skewRange{}
	}
	return skewRange{max(s.present.later, s.spent.later), max(s.present.earlier, s.spent.earlier)}
}

// skews are the counts of a hot key that may belong to other panes than the ones they are
// placed in, because the clocks of their senders are not known better. The bounds do not widen
// for the counts of other senders, so they stay narrow if one clock of many is off.
type skews struct {
	view   *view
	from   int64      // first pane whose counts were all recorded here
	newest int64      // newest pane
	panes  []skewPane // ring of panes; nil if no count has a skew
}

// skewPane holds the counts placed in a pane that may belong to later panes, or to earlier
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

// around returns how many of the counts that are placed in the panes from first to last may
// belong to others, and how many counts placed in others may belong to these.
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

// addSkew widens the bounds of a hot key in the window that ends with a pane by the counts that
// may belong to the other side of the window's ends. While the key was not hot, the senders
// were not recorded, and all counts of those panes may be such.
func (w *watched) addSkew(h *rules.Hot, last int64) {
	v := w.holder.view
	widest := w.rule.skew.rangeAt(v.Start(last))
	if widest == (skewRange{}) {
		return
	}
	first, unrecorded := last-int64(v.Panes)+1, v.Kept()+last
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
	if h.High != rules.Unknown {
		h.High += in
	}
}
