package fleet

import (
	"math"
	"time"
)

// demand estimates the permits per second that an instance's requests ask for.
type demand struct {
	perSecond float64
	asked     int64 // permits asked for since the last estimate
	since     int64 // clock's time of the last estimate
}

// smoothing is the time constant of the estimate.
const smoothing = 100 * time.Millisecond

// observe counts permits that were asked for up to now. The estimate follows a number outside two
// standard deviations of a Poisson process at once, and any other one slowly.
func (d *demand) observe(asked, now int64, every time.Duration) {
	d.asked += asked
	passed := time.Duration(now - d.since)
	if passed < every/2 {
		return
	}
	seconds := passed.Seconds()
	rate, expected := float64(d.asked)/seconds, d.perSecond*seconds
	if math.Abs(float64(d.asked)-expected) > 2*math.Sqrt(expected)+1 {
		d.perSecond = rate
	} else {
		d.perSecond += (rate - d.perSecond) * -math.Expm1(-float64(passed)/float64(smoothing))
	}
	if d.perSecond < negligible {
		d.perSecond = 0
	}
	d.asked, d.since = 0, now
}

// negligible is the demand, in permits per second, below which there is none.
const negligible = 0.05

// within returns the permits that are asked for within a time, with a reserve of two standard
// deviations.
func (d *demand) within(t time.Duration) int64 {
	mean := d.perSecond * t.Seconds()
	return int64(math.Ceil(mean + 2*math.Sqrt(mean)))
}
