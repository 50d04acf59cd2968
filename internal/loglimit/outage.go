package loglimit

import "time"

// Outage bounds the lines about something that fails until it works again: one for the
// beginning and one for the end of each outage that is logged. The zero value is ready
// to use. An Outage is not safe for concurrent use.
type Outage struct {
	limit Limit
	began time.Time // zero: no outage that was logged lasts
}

// Begin records a failure. It reports whether to log the beginning of an outage, which it
// does at most once each every. An outage that begins too soon after another is logged
// by a later failure, if it lasts.
func (o *Outage) Begin(every time.Duration, now time.Time) (log bool) {
	if !o.began.IsZero() {
		return false
	}
	if _, log = o.limit.Allow(Rate{Burst: 1, Every: every}, now); log {
		o.began = now
	}
	return log
}

// End records a success. It reports whether to log the end of an outage, as its beginning
// was logged, and how long ago that was.
func (o *Outage) End(now time.Time) (lasted time.Duration, log bool) {
	if o.began.IsZero() {
		return 0, false
	}
	lasted = now.Sub(o.began)
	o.began = time.Time{}
	return lasted, true
}
