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

	samples []sample
	told    time.Duration
}

type sample struct {
	at    time.Duration
	total float64
}

// Sample records the total. It returns a violation, at most once per window, if the total grew by
// more than Most within the window.
func (c *Cap) Sample(at time.Duration, total float64) *Violation {
	c.samples = append(c.samples, sample{at, total})
	for len(c.samples) > 1 && at-c.samples[0].at > c.Window {
		c.samples = c.samples[1:]
	}
	first := c.samples[0]
	if total-first.total <= c.Most || c.told > 0 && at-c.told < c.Window {
		return nil
	}
	c.told = at
	return &Violation{At: at, Invariant: I4, Subject: c.Subject, Text: fmt.Sprintf(
		"%.0f within %.1fs, at most %.0f within %v", total-first.total, (at - first.at).Seconds(), c.Most, c.Window)}
}

// Level judges a figure, such as open descriptors, that may be high during a fault and must be
// low again after it.
type Level struct {
	Invariant, Subject string

	Most     float64
	Deadline time.Duration // time after a fault

	excused time.Duration
	told    bool
}

// Excuse allows the figure to be high up to the given time.
func (l *Level) Excuse(until time.Duration) { l.excused, l.told = max(l.excused, until), false }

// Sample returns a violation, once per fault, if the figure is too high after the deadline.
func (l *Level) Sample(at time.Duration, v float64, stalls *Stalls) *Violation {
	if v <= l.Most || l.told || at < stalls.Extended(l.excused, l.Deadline, at) {
		return nil
	}
	l.told = true
	return &Violation{At: at, Invariant: l.Invariant, Subject: l.Subject, Text: fmt.Sprintf("%.0f, at most %.0f %v after a fault", v, l.Most, l.Deadline)}
}
