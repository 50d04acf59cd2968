package decode

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/wire"
)

// steadyTime returns a clock that is never set. When the clock of this machine is set, the
// offsets of all senders change at once, so they are kept against this one. It returns an
// instant on the steady clock, and how far ahead of it the machine's has been set since. An
// instant without a monotonic reading, such as a broker's, is returned as it is.
func steadyTime() func(now time.Time) (steady time.Time, set time.Duration) {
	base := time.Now()
	return func(now time.Time) (steady time.Time, set time.Duration) {
		steady = base.Add(now.Sub(base)).Round(0)
		return steady, now.Round(0).Sub(steady)
	}
}

// start returns when the counts of a packet begin, by our clock. The offset of the sender's
// clock is subtracted if it is more than clockSlack, and is only reported if the packet was
// not stamped on arrival.
func (s *senders) start(from *sender, m *wire.Meta, now time.Time, stamped bool) time.Time {
	start := time.Unix(0, m.Start)
	c := &from.clock
	if m.Sent == 0 { // versions that do not report it
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
	if from.doubt = c.doubt(); !stamped {
		from.doubt = 0
		return start
	}
	if c.offset != before {
		// The clock may have been set within this flush, which then began by the old one: it
		// began as late as it can have before it was sent.
		old, sent := start.Add(before+set), time.Unix(0, m.Sent).Add(by)
		start = start.Add(by)
		if !old.After(sent) && (old.After(start) || start.After(sent)) {
			start = old
		}
		return start
	}
	return start.Add(by)
}

// show stores an offset for Clocks.
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

// SenderClock is the clock of an instance that is off.
type SenderClock struct {
	Name string
	// Behind is how far it is behind the clock that stamps arrivals. Negative means ahead.
	Behind time.Duration
	// Corrected reports whether counts are placed as if the clock were right.
	Corrected bool
}

// Clocks returns the clocks that are off, of instances whose packets arrived lately, by
// name. It is safe for concurrent use.
func (d *Decoder) Clocks(now time.Time) []SenderClock {
	s := d.senders
	s.mu.Lock()
	defer s.mu.Unlock()
	var off []SenderClock
	for name, is := range s.off {
		if now.Sub(s.byName[name].heard) <= liveFor {
			off = append(off, SenderClock{name, is.by, is.corrected})
		}
	}
	slices.SortFunc(off, func(a, b SenderClock) int { return cmp.Compare(a.Name, b.Name) })
	return off
}

// OffClocks are the instances whose clocks are off by more than [DefaultLag].
type OffClocks struct {
	N     int64       // number of instances
	Worst SenderClock // the clock that is furthest off
}

// merge adds those of another decoder, which may be the same ones.
func (o *OffClocks) merge(other OffClocks) {
	o.N = max(o.N, other.N)
	if other.Worst.Behind.Abs() > o.Worst.Behind.Abs() {
		o.Worst = other.Worst
	}
}

// offNow returns those that are off.
func (s *senders) offNow() (o OffClocks) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, is := range s.off {
		o.merge(OffClocks{int64(len(s.off)), SenderClock{name, is.by, is.corrected}})
	}
	return o
}
