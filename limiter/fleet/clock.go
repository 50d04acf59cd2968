package fleet

import (
	"sync/atomic"
	"time"
)

// clock is a monotonic clock that also runs while the machine is suspended, when Go's stands still.
// It follows the system's clock forward, so permits end early if that is set forward.
type clock struct {
	start time.Time
	slept atomic.Int64 // ns by which the system's clock has run further than the monotonic one
}

// leap is the least difference of the two clocks that counts as a suspension. Corrections by NTP
// are smaller.
const leap = int64(10 * time.Millisecond)

// newClock returns a clock whose time is never 0, which stands for no time.
func newClock() *clock { return &clock{start: time.Now().Add(-time.Nanosecond)} }

// now returns the time since the clock began, in ns.
func (c *clock) now() int64 {
	t := time.Now()
	ran := int64(t.Sub(c.start))
	ahead := t.UnixNano() - c.start.UnixNano() - ran
	for {
		slept := c.slept.Load()
		if ahead <= slept+leap {
			return ran + slept
		}
		c.slept.CompareAndSwap(slept, ahead)
	}
}
