package loglimit

import (
	"log/slog"
	"time"
)

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

// Failed records a failure of now, and warns at the beginning of an outage as [Outage.Begin] has
// it.
func (o *Outage) Failed(log *slog.Logger, every time.Duration, now time.Time, text string, args ...any) {
	if o.Begin(every, now) {
		log.Warn(text, args...)
	}
}

// Succeeded records a success of now, and logs the end of an outage whose beginning was logged.
// "after" says how long it lasted.
func (o *Outage) Succeeded(log *slog.Logger, now time.Time, text string, args ...any) {
	if lasted, ended := o.End(now); ended {
		log.Info(text, append([]any{"after", lasted.Round(time.Millisecond)}, args...)...)
	}
}

// Report records the outcome of one try of now: it is [Outage.Failed] with the text begins if err
// is not nil, else [Outage.Succeeded] with the text ends.
func (o *Outage) Report(log *slog.Logger, every time.Duration, now time.Time, err error, begins, ends string) {
	if err != nil {
		o.Failed(log, every, now, begins, "err", err)
		return
	}
	o.Succeeded(log, now, ends)
}
