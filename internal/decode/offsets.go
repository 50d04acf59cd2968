package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

// start returns the time, by our clock, at which the counts of a packet begin. It subtracts the
// offset of the sender's clock if that exceeds clockSlack. If the packet was not stamped on
// arrival, the offset is only reported.
func (s *senders) start(from *sender, m *wire.Meta, now time.Time, stamped bool) time.Time {
	start := time.Unix(0, m.Start)
	c := &from.clock
	if m.Sent == 0 { // sent by a version that does not report its send time
		if stamped {
			start = start.Add(c.shown.by)
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
		c.note(m.Sent, steady, life)
	}
	by := c.offset + set
	if by.Abs() <= clockSlack {
		by = 0
	}
	if is := (clockOffset{by, stamped}); is != c.shown {
		c.shown = is
		s.show(from.name, is)
	}
	if from.doubt, from.skew = c.doubt(), c.skew(by, set); !stamped {
		from.doubt, from.skew = 0, 0
		return start
	}
	if c.offset != before {
		// The clock may have been set during this flush, which then began by the old clock. The
		// later of both starts is used, unless it is after the send time.
		old, sent := start.Add(before+set), time.Unix(0, m.Sent).Add(by)
		start = start.Add(by)
		if !old.After(sent) && (old.After(start) || start.After(sent)) {
			start = old
		}
		return start
	}
	return start.Add(by)
}

// show stores an offset for Clocks, or removes it if it is zero.
func (s *senders) show(name string, is clockOffset) {
	switch {
	case is.by == 0:
		delete(s.off, name)
	case s.off == nil:
		s.off = make(map[string]clockOffset)
		fallthrough
	default:
		s.off[name] = is
	}
}

// offNow returns the clocks that are off.
func (s *senders) offNow() (o OffClocks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, is := range s.off {
		o.merge(OffClocks{int64(len(s.off)), SenderClock{name, is.by, is.corrected}})
	}
	return o
}

// noteAge records the age of a sender's counts on arrival, and whether the sender is late.
func (s *senders) noteAge(from *sender, age time.Duration, now time.Time) {
	from.lateness.note(age, now)
	if age = from.lateness.age(); age <= lateAfter {
		delete(s.late, from.name)
		return
	}
	if s.late == nil {
		s.late = make(map[string]time.Duration)
	}
	s.late[from.name] = age
}

// lateNow returns the senders whose counts arrive late.
func (s *senders) lateNow() (l LateSenders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, age := range s.late {
		l.merge(LateSenders{int64(len(s.late)), name, age})
	}
	return l
}
