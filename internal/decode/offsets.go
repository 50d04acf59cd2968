package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// startTime returns the time, by our clock, at which the counts of a packet begin. It subtracts
// the offset of the sender's clock if that exceeds clockSlack. If the packet was not stamped on
// arrival, the offset is only reported.
func (s *senders) startTime(from *sender, m *wire.Meta, now time.Time, stamped bool) time.Time {
	start := time.Unix(0, m.Start)
	c := &from.clock
	if m.Sent == 0 { // sent by a version that does not report its send time
		if stamped {
			start = start.Add(c.shown.behind)
		}
		return start
	}
	steady, set := s.steady(now)
	if c.sent == 0 {
		c.offset = -set
	}
	life := from.incarnation != m.Incarnation || from.last == 0
	before := c.offset
	if life || m.Seq > from.last {
		c.observe(m.Sent, steady, life)
	}
	offset := c.offset + set
	if offset.Abs() <= clockSlack {
		offset = 0
	}
	if shown := (clockOffset{offset, stamped}); shown != c.shown {
		c.shown = shown
		s.showOffset(from.name, shown)
	}
	if from.doubt, from.skew = c.doubt(), c.skew(offset, set); !stamped {
		from.doubt, from.skew = 0, 0
		return start
	}
	if c.offset != before {
		// The clock may have been set during this flush, which then began by the old clock. The
		// later of both starts is used, unless it is after the send time.
		old, sent := start.Add(before+set), time.Unix(0, m.Sent).Add(offset)
		start = start.Add(offset)
		if !old.After(sent) && (old.After(start) || start.After(sent)) {
			start = old
		}
		return start
	}
	return start.Add(offset)
}

// showOffset stores an offset for Clocks, or removes it if it is zero.
func (s *senders) showOffset(name string, shown clockOffset) {
	switch {
	case shown.behind == 0:
		delete(s.off, name)
	case s.off == nil:
		s.off = make(map[string]clockOffset)
		fallthrough
	default:
		s.off[name] = shown
	}
}

// offClocks returns the clocks that are off.
func (s *senders) offClocks() (o OffClocks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, shown := range s.off {
		o.merge(OffClocks{int64(len(s.off)), SenderClock{name, shown.behind, shown.corrected}})
	}
	return o
}

// recordAge records the age of a sender's counts on arrival, and whether the sender is late.
func (s *senders) recordAge(from *sender, age time.Duration, now time.Time) {
	from.lateness.recordAge(age, now)
	if age = from.lateness.age(); age <= lateAfter {
		delete(s.late, from.name)
		return
	}
	if s.late == nil {
		s.late = make(map[string]time.Duration)
	}
	s.late[from.name] = age
}

// lateSenders returns the senders whose counts arrive late.
func (s *senders) lateSenders() (l LateSenders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, age := range s.late {
		l.merge(LateSenders{int64(len(s.late)), name, age})
	}
	return l
}
