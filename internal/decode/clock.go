package decode

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// senderClock is the state of a sender's clock. The age of a packet, its arrival time less its send
// time, is the clock's offset from ours plus the packet's delay. The delay is never negative,
// and is almost nothing once a backlog has drained. So the least age of half a minute is the
// offset.
//
// A lower age than any before proves that the offset is no higher, and is believed at once. A
// higher age is believed if no backlog explains it. That holds if the send times went back,
// since then the clock was set, or if the half minute has passed. It also holds if a sender
// that is new, or was silent, has been equally late for a second, unlike a draining backlog.
//
// Arrivals are times of a clock of ours that is never set; see steadyTime.
type senderClock struct {
	ages   [clockSlots]time.Duration // ring of the least age in each slot
	slot   int64                     // number of the newest slot; 0 if no age is known
	least  time.Duration             // least age in all slots
	full   bool                      // whether each slot has an age
	sent   int64                     // send time of the newest packet
	offset time.Duration             // the believed offset
	shown  SenderClock               // see Decoder.Clocks; not off if Behind is 0

	first, last int64 // arrivals of the first and last age since the state was reset
	packets     int   // number of those ages

	low, high time.Duration // range of the latest ages that differ little
	since     int64         // arrival of the first of them, in ns since the Unix epoch
	steady    int           // number of them
}

const (
	// clockSlots times clockSlot is the time for which ages matter.
	clockSlots = 10
	clockSlot  = 3 * time.Second
	// clockSlack is how far a clock may differ from its estimate: counts may arrive that much
	// late anyway, and clocks that are kept by NTP are within it.
	clockSlack = DefaultLag
	// steadyFor is how long the ages of a new sender must be within clockSlack of each other to
	// be believed, and steadyPackets how many ages are needed. A backlog that drains at most a
	// quarter faster than real time passes for a slow clock until it has drained.
	steadyFor     = time.Second
	steadyPackets = 8

	noAge = time.Duration(math.MaxInt64)
)

// observe updates the clock with the send time and the arrival of an in-order packet. Callers
// leave out overtaken packets, since the sender's clock may have been set in between. life
// reports whether the packet is the first of an incarnation.
func (c *senderClock) observe(sent int64, arrived time.Time, life bool) {
	when := arrived.UnixNano()
	age := arrived.Sub(time.Unix(0, sent))
	wasSet := c.sent-sent > int64(clockSlack) // neither is negative
	if life || wasSet {
		c.slot = 0 // it may run on another machine now
	}
	c.sent = sent
	c.addAge(age, rules.Window{Pane: clockSlot}.Index(arrived))
	if c.packets == 0 {
		c.first = when
	}
	c.last, c.packets = when, c.packets+1
	over := c.least - c.offset
	switch {
	case over < -clockSlack, over > clockSlack && (wasSet || c.full || c.isSteady(age, when)):
		c.offset, c.steady = c.least, 0
	case over <= clockSlack:
		c.steady = 0
	}
}

// addAge adds an age to a slot.
func (c *senderClock) addAge(age time.Duration, slot int64) {
	switch {
	case c.slot == 0, slot >= c.slot+clockSlots, slot < c.slot-1: // no recent age is known, or arrivals went back
		for i := range c.ages {
			c.ages[i] = noAge
		}
		c.slot, c.least, c.full, c.steady, c.packets = slot, noAge, false, 0, 0
	case slot > c.slot:
		for c.slot < slot {
			c.slot++
			c.ages[ring.Slot(c.slot, clockSlots)] = noAge
		}
		c.least, c.full = noAge, true
		for i, age := range c.ages {
			c.least = min(c.least, age)
			c.full = c.full && (age != noAge || i == int(ring.Slot(c.slot, clockSlots)))
		}
	}
	newest := &c.ages[ring.Slot(c.slot, clockSlots)]
	*newest, c.least = min(*newest, age), min(c.least, age)
}

// isSteady reports whether the packets that arrived up to arrival have been equally late for
// steadyFor.
func (c *senderClock) isSteady(age time.Duration, arrival int64) bool {
	c.low, c.high = min(c.low, age), max(c.high, age)
	if c.steady == 0 || c.high-c.low > clockSlack {
		c.low, c.high, c.since, c.steady = age, age, arrival, 0
	}
	c.steady++
	return c.steady >= steadyPackets && arrival-c.since >= int64(steadyFor)
}

// doubt returns by how much the placed times of counts may be too early, because the sender's
// clock is slow or its packets are delayed.
func (c *senderClock) doubt() time.Duration {
	if over := c.least - c.offset; c.slot != 0 && over > clockSlack {
		return over
	}
	return 0
}

// skew returns by how much the placed times of counts may be too early or, if negative, by how
// much they are too late at least. subtracted is the offset that is applied, and set is how far our
// clock has been set. It returns zero if the clock is as accurate as the time of a flush can be
// known. It also returns zero for a new sender: the delay of its first packets cannot be
// distinguished from a slow clock yet.
func (c *senderClock) skew(subtracted, set time.Duration) time.Duration {
	over := c.least + set - subtracted
	isNew := c.packets < steadyPackets || c.last-c.first < int64(steadyFor)
	if c.slot == 0 || over.Abs() <= goodClock || over > clockSlack || over > 0 && isNew {
		return 0
	}
	return over
}

// goodClock is how far a clock may be off, or its packets be delayed at least, without an
// effect on bounds. It is half a flush, so that most counts of a flush belong to the pane where
// the flush began.
const goodClock = base.FlushInterval / 2

// steadyTime returns a clock that is never set. When the clock of this machine is set, the
// offsets of all senders change at once, so they are kept against this one. The clock returns
// an instant on the steady clock, and how far ahead of it the machine's has been set since. An
// instant without a monotonic reading, such as a broker's, is returned unchanged.
func steadyTime() func(now time.Time) (steady time.Time, set time.Duration) {
	base := time.Now()
	return func(now time.Time) (steady time.Time, set time.Duration) {
		steady = base.Add(now.Sub(base)).Round(0)
		return steady, now.Round(0).Sub(steady)
	}
}
