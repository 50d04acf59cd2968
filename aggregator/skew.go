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

// ruleSkew is the range of the counts of a rule lately: of a span and of the one before it.
type ruleSkew struct {
	span           time.Duration
	from           time.Time
	present, spent skewRange
}

// minSkewSpan is the least span of a [ruleSkew], so that a sender in each is heard.
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

// at returns the range of the counts that were placed up to a span before an instant.
func (s *ruleSkew) at(now time.Time) skewRange {
	if s.from.IsZero() || now.Sub(s.from) >= 2*s.span {
		return skewRange{}
	}
	return skewRange{max(s.present.later, s.spent.later), max(s.present.earlier, s.spent.earlier)}
}

// skews are the counts of a hot key that may be of other panes than those they are placed in,
// because the clocks of their senders are not known better. Its bounds leave the counts of other
// senders alone, so they stay narrow if one clock of many is off.
type skews struct {
	view   *view
	from   int64      // counts of panes before it were not all seen here
	newest int64      // pane
	panes  []skewPane // by pane: a ring; nil without such counts
}

// skewPane is what is placed in a pane and may be of later panes, or of earlier ones, up to so
// many.
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
		return // no window has it
	}
	p, reach := &s.panes[ring.Slot(pane, size)], v.Index(c.When.Add(c.Skew))-pane
	if reach > 0 {
		p.later, p.reachLater = p.later+c.N, max(p.reachLater, reach)
	} else if reach < 0 {
		p.earlier, p.reachEarlier = p.earlier+c.N, max(p.reachEarlier, -reach)
	}
}

// around returns how many of the counts that are placed in the panes from first to last may be
// of others, and how many of those placed in others may be of these.
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
// may be on the other side of the window's ends. Of panes whose senders were not recorded, since
// the key was not hot, they may be all.
func (w *watched) addSkew(h *rules.Hot, last int64) {
	v := w.by.view
	most := w.rule.skew.at(v.Start(last))
	if most == (skewRange{}) {
		return
	}
	first, unrecorded := last-int64(v.Panes)+1, v.Kept()+last
	var out, in int64
	if w.skews.view == v {
		unrecorded = w.skews.from - 1
		out, in = w.skews.around(first, last)
	}
	later, earlier := int64((most.later+v.Pane-1)/v.Pane), int64((most.earlier+v.Pane-1)/v.Pane)
	i := w.at[v.number]
	part := func(from, to int64) int64 { return v.Part(i, from, min(to, unrecorded)) }
	out += part(max(first, last-later+1), last) + part(first, min(last, first+earlier-1))
	in += part(first-later, first-1) + part(last+1, last+earlier)
	h.Low = max(0, h.Low-out)
	if h.High != rules.Unknown {
		h.High += in
	}
}
