package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// heldTotals adds up what the instances hide of any key by holding small counts back.
// Of a window, and of one instance whose h was at most h while it lasted, that is
// at most 2(h-1): less than h that is not sent by now, and less than h of one
// send whose oldest part is from before the window, where all of it is placed.
// (The sends of one key cover times that do not overlap, so no more than one
// straddles the window's first instant.) Only instances with h above 1 lately
// are followed: their maxima, in eighths of the time that matters to a window.
type heldTotals struct {
	spans   []heldSpan
	rules   []int // of each rule the span of its longest window, -1: none
	holding []*holding
	decayed time.Time
}

// heldSpan is the time for which an h matters to some windows.
type heldSpan struct {
	slot     time.Duration
	bound    int64 // of all instances
	untold   int64 // the part of instances that do not report it by group
	reported [2]int64
}

// holding is what one instance holds back, by span.
type holding struct {
	sender *sender
	untold bool // of groups
	maxima []maxima
}

// maxima are the highest values by slot of time, for the last heldSlots.
type maxima struct {
	newest int64
	values [heldSlots]int64
	bound  int64
}

const heldSlots = 8

// heldGrace is how much longer than its window an h matters to a rule: counts arrive late,
// and windows are evaluated when they have ended before the lag.
const heldGrace = 2 * DefaultGrace

func newHeld(rules *rules.Rules) heldTotals {
	h := heldTotals{rules: make([]int, len(rules.Rules))}
	known := make(map[time.Duration]int)
	for i := range rules.Rules {
		longest := lookback(&rules.Rules[i])
		if h.rules[i] = -1; longest == 0 {
			continue
		}
		at, ok := known[longest]
		if !ok {
			at = len(h.spans)
			known[longest] = at
			h.spans = append(h.spans, heldSpan{slot: (longest + heldGrace) / (heldSlots - 1)})
		}
		h.rules[i] = at
	}
	return h
}

// note records the value of a sender's packet. untold says that it is not reported by group.
func (h *heldTotals) note(s *sender, value int64, untold bool, now time.Time) {
	if s.holding == nil {
		if value <= 1 {
			return
		}
		s.holding = &holding{sender: s, maxima: make([]maxima, len(h.spans))}
		for i := range s.holding.maxima {
			s.holding.maxima[i].newest = ring.Never
		}
		h.holding = append(h.holding, s.holding)
	}
	if untold && !s.holding.untold {
		s.holding.untold = true // of what it holds back in the time that matters, some at least
		for i := range h.spans {
			h.spans[i].untold += s.holding.maxima[i].bound
		}
	}
	for i := range h.spans {
		s.holding.raise(i, &h.spans[i], min(value, wire.MaxCount), now)
	}
}

// decay drops values that are too old to matter.
func (h *heldTotals) decay(now time.Time) {
	if len(h.holding) == 0 || now.Sub(h.decayed).Abs() < Tick { // readers are not all at the same time
		return
	}
	h.decayed = now
	kept := h.holding[:0]
	for _, one := range h.holding {
		rest := int64(0)
		for i := range h.spans {
			one.raise(i, &h.spans[i], 1, now)
			rest += one.maxima[i].bound
		}
		if rest > 0 {
			kept = append(kept, one)
		} else {
			one.sender.holding = nil
		}
	}
	clear(h.holding[len(kept):])
	h.holding = kept
}

// raise records a value and updates the bounds.
func (o *holding) raise(i int, span *heldSpan, value int64, now time.Time) {
	m := &o.maxima[i]
	was := m.bound
	m.bound = 2 * (m.raise(rules.Window{Pane: span.slot}.Index(now), value) - 1)
	span.bound += m.bound - was
	if o.untold {
		span.untold += m.bound - was
	}
}

func (m *maxima) raise(at, value int64) (highest int64) {
	if at < m.newest-heldSlots {
		m.newest = at // the clock was set back: values keep their full life
	}
	for m.newest = max(m.newest, at-heldSlots); m.newest < at; {
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

// report calls f for each rule whose bound changed since the last time.
func (h *heldTotals) report(f func(rule int, bound, untold int64)) {
	for i := range h.spans {
		span := &h.spans[i]
		now := [2]int64{span.bound, span.untold}
		if now == span.reported {
			continue
		}
		span.reported = now
		for rule, at := range h.rules {
			if at == i {
				f(rule, span.bound, span.untold)
			}
		}
	}
}
