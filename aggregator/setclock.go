package aggregator

import "time"

// wallClock detects that the system's clock was set forward, by comparison with the monotonic
// one.
type wallClock struct{ last time.Time }

// leastSet is the smallest step that is detected. Smaller steps occur when a clock is kept
// right.
const leastSet = time.Second

// forwardStep returns by how much the clock was set forward since the last call, or 0. now is a
// result of [time.Now].
func (c *wallClock) forwardStep(now time.Time) (step time.Duration) {
	if !c.last.IsZero() {
		step = now.Round(0).Sub(c.last.Round(0)) - now.Sub(c.last)
	}
	c.last = now
	if step < leastSet {
		return 0
	}
	return step
}

// restartShort restarts the views whose windows are at most four times as long as the step. Their
// counts would be old at once, and all hot keys would cool. After a smaller step a window ends
// with the counts that it has.
func (d *Detector) restartShort(now time.Time, step time.Duration) {
	for _, r := range d.watches {
		for _, v := range r.views {
			if 4*step >= time.Duration(v.Panes)*v.Pane {
				d.restart(v, now)
			}
		}
	}
}
