package aggregator

import "time"

// wallClock notices that the system's clock was set forward, by the monotonic one.
type wallClock struct{ last time.Time }

// leastSet is by how much a clock is set to be noticed. Less is how clocks are kept right.
const leastSet = time.Second

// setForward returns by how much the clock was set forward since the last call, or 0. now is of
// [time.Now].
func (c *wallClock) setForward(now time.Time) (by time.Duration) {
	if !c.last.IsZero() {
		by = now.Round(0).Sub(c.last.Round(0)) - now.Sub(c.last)
	}
	c.last = now
	if by < leastSet {
		return 0
	}
	return by
}

// setForward restarts the views for whose windows the clock was set forward by much: their counts
// are of long ago at once, and all hot keys would cool. A smaller step leaves a window to end with
// the counts that it has.
func (d *Detector) setForward(now time.Time, by time.Duration) {
	for _, r := range d.watches {
		for _, v := range r.views {
			if 4*by >= time.Duration(v.Panes)*v.Pane {
				d.restart(v, now)
			}
		}
	}
}
