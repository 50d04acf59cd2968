package oracle

import (
	"fmt"
	"time"
)

// Cap judges a total that only grows, such as the number of lines in a log, by its growth within
// a window.
type Cap struct {
	Subject string // the counted things and their process
	Most    float64
	Window  time.Duration

	samples    []sample
	reportedAt time.Duration
}

type sample struct {
	when  time.Duration
	total float64
}

// Sample records the total. It returns a violation, at most once per window, if the total grew by
// more than Most within the window.
func (c *Cap) Sample(now time.Duration, total float64) *Violation {
	c.samples = append(c.samples, sample{now, total})
	for len(c.samples) > 1 && now-c.samples[0].when > c.Window {
		c.samples = c.samples[1:]
	}
	first := c.samples[0]
	if total-first.total <= c.Most || c.reportedAt > 0 && now-c.reportedAt < c.Window {
		return nil
	}
	c.reportedAt = now
	return &Violation{At: now, Invariant: I4, Subject: c.Subject, Text: fmt.Sprintf(
		"%.0f within %.1fs, at most %.0f within %v", total-first.total, (now - first.when).Seconds(), c.Most, c.Window)}
}

// Level judges a figure, such as open descriptors, that may be high during a fault and must be
// low again after it.
type Level struct {
	Invariant, Subject string

	Most     float64
	Deadline time.Duration // time after a fault

	excused    time.Duration
	isReported bool
}

// Excuse allows the figure to be high up to the given time.
func (l *Level) Excuse(until time.Duration) { l.excused, l.isReported = max(l.excused, until), false }

// Sample returns a violation, once per fault, if the figure is too high after the deadline.
func (l *Level) Sample(now time.Duration, value float64, stalls *Stalls) *Violation {
	if value <= l.Most || l.isReported || now < stalls.Extended(l.excused, l.Deadline, now) {
		return nil
	}
	l.isReported = true
	return &Violation{At: now, Invariant: l.Invariant, Subject: l.Subject, Text: fmt.Sprintf("%.0f, at most %.0f %v after a fault", value, l.Most, l.Deadline)}
}
