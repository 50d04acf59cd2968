package loglimit

import (
	"log/slog"
	"time"
)

// Outage bounds the lines about a failure that lasts: one for the beginning and one for the end
// of each outage that is logged. The zero value is ready to use. An Outage is not safe for
// concurrent use.
type Outage struct {
	limit Limit
	began time.Time // beginning of the current outage; zero if there is none or it was not logged
}

// Begin records a failure at now. It reports whether to log the beginning of an outage, which
// happens at most once in each interval every. An outage that begins too soon after another is
// logged by a later failure, if it lasts.
func (o *Outage) Begin(every time.Duration, now time.Time) (log bool) {
	if !o.began.IsZero() {
		return false
	}
	if _, log = o.limit.Allow(LineRate{Burst: 1, Every: every}, now); log {
		o.began = now
	}
	return log
}

// End records a success at now. It reports whether to log the end of an outage, because its
// beginning was logged, and how long ago that was.
func (o *Outage) End(now time.Time) (lasted time.Duration, log bool) {
	if o.began.IsZero() {
		return 0, false
	}
	lasted = now.Sub(o.began)
	o.began = time.Time{}
	return lasted, true
}

// Failed records a failure at now, and logs a warning if [Outage.Begin] reports the beginning of
// an outage.
func (o *Outage) Failed(log *slog.Logger, every time.Duration, now time.Time, text string, args ...any) {
	if o.Begin(every, now) {
		log.Warn(text, args...)
	}
}

// Succeeded records a success at now, and logs the end of an outage whose beginning was logged.
// The attribute "after" is its length.
func (o *Outage) Succeeded(log *slog.Logger, now time.Time, text string, args ...any) {
	if lasted, ended := o.End(now); ended {
		log.Info(text, append([]any{"after", lasted.Round(time.Millisecond)}, args...)...)
	}
}

// OutageText holds the log messages for the beginning and the end of an outage.
type OutageText struct{ Begun, Over string }

// Report records the outcome of an attempt at now. It calls [Outage.Failed] with text.Begun if err
// is not nil, and [Outage.Succeeded] with text.Over otherwise.
func (o *Outage) Report(log *slog.Logger, every time.Duration, now time.Time, err error, text OutageText) {
	if err != nil {
		o.Failed(log, every, now, text.Begun, "err", err)
		return
	}
	o.Succeeded(log, now, text.Over)
}
