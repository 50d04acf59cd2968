package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// heldTotals adds up the counts of any one key that the instances hide by holding small counts
// back. Each packet states its instance's h ([wire.Meta].Held): the unsent count of each key is
// below it. If h stayed at or below H during a window, the instance hides at most 2(H-1) of a
// key in that window: less than H that is not sent yet, and less than H of one send that began
// before the window, since all of a send is placed at its oldest part. (The sends of one key
// cover times that do not overlap, so at most one straddles the start of the window.)
//
// Only instances whose h was above 1 lately are followed. For each, heldTotals keeps the
// maximum of h in each eighth of the time that matters to a window.
type heldTotals struct {
	spans   []heldSpan
	rules   []int // by rule, the span of its longest window; -1 if it has none
	holding []*holding
	decayed time.Time
}

// heldSpan is a length of time for which an h matters: that of the windows of some rules, and
// heldGrace.
type heldSpan struct {
	slot     time.Duration
	bound    int64 // bound for all instances
	untold   int64 // part of bound for instances that do not report it by group
	reported [2]int64
}

// holding is the state of one instance that holds counts back. It has the maxima of each span.
type holding struct {
	sender *sender
	untold bool // whether it does not report them by group
	maxima []maxima
}

// maxima are the highest values of h in each of the last heldSlots slots of time.
type maxima struct {
	newest int64
	values [heldSlots]int64
	bound  int64
}

const heldSlots = 8

// heldGrace is how much longer than its window an h matters to a rule: counts arrive late, and
// windows are evaluated when they ended more than the lag ago.
const heldGrace = 2 * DefaultGrace

func newHeld(rules *rules.Rules) heldTotals {
	h := heldTotals{rules: make([]int, len(rules.Rules))}
	known := make(map[time.Duration]int)
	for i := range rules.Rules {
		longest := lookback(&rules.Rules[i])
		if h.rules[i] = -1; longest == 0 {
			continue
		}
		span, ok := known[longest]
		if !ok {
			span = len(h.spans)
			known[longest] = span
			h.spans = append(h.spans, heldSpan{slot: (longest + heldGrace) / (heldSlots - 1)})
		}
		h.rules[i] = span
	}
	return h
}

// recordHeld records the h of a sender's packet. untold reports whether the sender does not
// report its held-back counts by group.
func (h *heldTotals) recordHeld(s *sender, value int64, untold bool, now time.Time) {
	if s.holding == nil {
		if value <= 1 {
			return
		}
		s.holding = &holding{sender: s, maxima: make([]maxima, len(h.spans))}
		h.holding = append(h.holding, s.holding)
	}
	if untold && !s.holding.untold {
		s.holding.untold = true // at least some of its bound is not reported by group
		for i := range h.spans {
			h.spans[i].untold += s.holding.maxima[i].bound
		}
	}
	for i := range h.spans {
		s.holding.raise(i, &h.spans[i], min(value, wire.MaxCount), now)
	}
}

// decay drops values that are too old to matter, and instances without any other.
func (h *heldTotals) decay(now time.Time) {
	if len(h.holding) == 0 || now.Sub(h.decayed).Abs() < Tick { // the times of different readers are not in order
		return
	}
	h.decayed = now
	kept := h.holding[:0]
	for _, instance := range h.holding {
		held := int64(0)
		for i := range h.spans {
			instance.raise(i, &h.spans[i], 1, now)
			held += instance.maxima[i].bound
		}
		if held > 0 {
			kept = append(kept, instance)
		} else {
			instance.sender.holding = nil
		}
	}
	clear(h.holding[len(kept):])
	h.holding = kept
}

// raise records a value in the newest slot of span i, and updates the bounds.
func (o *holding) raise(i int, span *heldSpan, value int64, now time.Time) {
	m := &o.maxima[i]
	was := m.bound
	m.bound = 2 * (m.raise(rules.Window{Pane: span.slot}.Index(now), value) - 1)
	span.bound += m.bound - was
	if o.untold {
		span.untold += m.bound - was
	}
}

func (m *maxima) raise(slot, value int64) (highest int64) {
	if slot < m.newest-heldSlots {
		m.newest = slot // the clock was set back: values keep their full life
	}
	for m.newest = max(m.newest, slot-heldSlots); m.newest < slot; {
		m.newest++
		m.values[ring.Slot(m.newest, heldSlots)] = 1
	}
	newest := &m.values[ring.Slot(m.newest, heldSlots)]
	*newest = max(*newest, value)
	for _, v := range m.values {
		highest = max(highest, v)
	}
	return highest
}

// report calls f for each rule whose bound changed since the last report.
func (h *heldTotals) report(f func(rule int, bound, untold int64)) {
	for i := range h.spans {
		span := &h.spans[i]
		now := [2]int64{span.bound, span.untold}
		if now == span.reported {
			continue
		}
		span.reported = now
		for rule, spanIndex := range h.rules {
			if spanIndex == i {
				f(rule, span.bound, span.untold)
			}
		}
	}
}
