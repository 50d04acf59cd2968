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
			start = start.Add(c.shown.Behind)
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
	c.shown = SenderClock{from.name, offset, stamped}
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

// addTo adds the number of senders, and those that are late or whose clocks are off.
func (s *senders) addTo(all *Stats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all.Senders = int64(len(s.byName))
	for name, from := range s.byName {
		if shown := from.clock.shown; shown.Behind != 0 {
			all.Off.N++
			all.Off.merge(OffClocks{Worst: shown})
		}
		if age := from.lateness.age(); age > lateAfter {
			all.Late.N++
			all.Late.merge(LateSenders{Latest: name, Age: age})
		}
	}
}

// lateness tracks a sender's minimum delay, by its own clock, over the last one to two slots.
// The minimum ignores single delayed packets and counts that were held back. A sender that is
// always late has a slow clock or a slow connection, and short windows lose its counts.
type lateness struct {
	least, before time.Duration // least age in this slot and in the previous one
	ends          time.Time     // end of the slot
}

const (
	latenessSlot = 1500 * time.Millisecond
	// lateAfter is how old counts may be on arrival and still be placed in any window.
	lateAfter = DefaultGrace
)

// recordAge records the age of a packet's counts.
func (l *lateness) recordAge(age time.Duration, now time.Time) {
	if now.Before(l.ends) {
		l.least = min(l.least, age)
		return
	}
	l.before = 0 // the lateness of a new or silent sender is unknown yet
	if !l.ends.IsZero() && now.Sub(l.ends) < latenessSlot {
		l.before = l.least
	}
	l.least, l.ends = age, now.Add(latenessSlot)
}

// age returns the least age of the last one to two slots.
func (l *lateness) age() time.Duration { return min(l.least, l.before) }
