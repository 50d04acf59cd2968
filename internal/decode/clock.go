package decode

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// clock is the state of a sender's clock. The age of a packet, its arrival less its send
// time, is the offset of the clock from ours plus the time that the packet was on its way.
// The latter is never negative, and falls to almost nothing once a backlog has drained, so
// the least age of half a minute is the offset.
//
// A lower age than any before proves that the offset is no higher, and is believed at once. A
// higher one is believed if no backlog explains it: if the send times went back, as the clock
// was set; if a sender that is new, or was silent, has been equally late for a second, which
// a backlog that drains is not; or if the half minute has passed.
//
// Arrivals are on a clock of ours that is never set, see steadyTime.
type clock struct {
	ages   [clockSlots]time.Duration // the least of each slot: a ring
	slot   int64                     // the newest slot; 0: no age is known
	least  time.Duration             // of all slots
	full   bool                      // each slot has an age
	sent   int64                     // the send time of the newest packet
	offset time.Duration             // what is believed
	shown  clockOffset               // see senders.off

	first, last int64 // arrivals of ages since nothing was known of late
	packets     int   // that had these

	low, high time.Duration // of the ages that have been about the same
	since     int64         // an arrival, in ns since the Unix epoch
	steady    int           // how many they are
}

// clockOffset is how far a clock is behind ours. It is subtracted, or only reported.
type clockOffset struct {
	by        time.Duration
	corrected bool
}

const (
	// clockSlots times clockSlot is for how long ages matter.
	clockSlots = 10
	clockSlot  = 3 * time.Second
	// clockSlack is how far a clock may differ from its estimate: counts may arrive that much
	// late anyway, and clocks that are kept by NTP are within it.
	clockSlack = DefaultLag
	// steadyFor is how long the ages of a new sender must be within clockSlack of each
	// other to be believed, and steadyPackets how many. A backlog that drains no faster
	// than a quarter above real time passes for a slow clock until it has drained.
	steadyFor     = time.Second
	steadyPackets = 8

	noAge = time.Duration(math.MaxInt64)
)

// note records a packet that arrived at an instant and was not overtaken by a newer one, as
// that one may be by a clock that was set meanwhile. life reports whether it is the first of
// an incarnation.
func (c *clock) note(sent int64, arrived time.Time, life bool) {
	at := arrived.UnixNano()
	age := arrived.Sub(time.Unix(0, sent))
	wasSet := c.sent-sent > int64(clockSlack) // neither is negative
	if life || wasSet {
		c.slot = 0 // it may run on another machine now
	}
	c.sent = sent
	c.add(age, rules.Window{Pane: clockSlot}.Index(arrived))
	if c.packets == 0 {
		c.first = at
	}
	c.last, c.packets = at, c.packets+1
	over := c.least - c.offset
	switch {
	case over < -clockSlack, over > clockSlack && (wasSet || c.full || c.isSteady(age, at)):
		c.offset, c.steady = c.least, 0
	case over <= clockSlack:
		c.steady = 0
	}
}

// add takes an age of a slot.
func (c *clock) add(age time.Duration, at int64) {
	switch {
	case c.slot == 0, at >= c.slot+clockSlots, at < c.slot-1: // nothing is known of late, or arrivals went back
		for i := range c.ages {
			c.ages[i] = noAge
		}
		c.slot, c.least, c.full, c.steady, c.packets = at, noAge, false, 0, 0
	case at > c.slot:
		for c.slot < at {
			c.slot++
			c.ages[ring.Slot(c.slot, clockSlots)] = noAge
		}
		c.least, c.full = noAge, true
		for i, of := range c.ages {
			c.least = min(c.least, of)
			c.full = c.full && (of != noAge || i == int(ring.Slot(c.slot, clockSlots)))
		}
	}
	newest := &c.ages[ring.Slot(c.slot, clockSlots)]
	*newest, c.least = min(*newest, age), min(c.least, age)
}

// isSteady reports whether the packets that came up to an instant have been equally late
// for some time.
func (c *clock) isSteady(age time.Duration, at int64) bool {
	c.low, c.high = min(c.low, age), max(c.high, age)
	if c.steady == 0 || c.high-c.low > clockSlack {
		c.low, c.high, c.since, c.steady = age, age, at, 0
	}
	c.steady++
	return c.steady >= steadyPackets && at-c.since >= int64(steadyFor)
}

// doubt returns how much later than they are placed counts can be of, as the clock is
// either slow or what it stamps is on its way for long.
func (c *clock) doubt() time.Duration {
	if over := c.least - c.offset; c.slot != 0 && over > clockSlack {
		return over
	}
	return 0
}

// skew returns how much later than they are placed counts can be of or, if negative, how much
// earlier at least they are, where the offset that is subtracted is by, and ours has been set by
// so much. It is zero of a clock that is as good as the time of a flush can be known, and of a
// sender that is new: what its first packets took to come is not yet told from a slow clock.
func (c *clock) skew(by, set time.Duration) time.Duration {
	over := c.least + set - by
	isNew := c.packets < steadyPackets || c.last-c.first < int64(steadyFor)
	if c.slot == 0 || over.Abs() <= goodClock || over > clockSlack || over > 0 && isNew {
		return 0
	}
	return over
}

// goodClock is how far a clock may be off, or what it stamps may be on its way at least, without
// an effect on bounds: half a flush, so that most counts of a flush are of the pane where it
// began.
const goodClock = base.FlushInterval / 2

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
