package oracle

import (
	"fmt"
	"time"
)

// Enforcement judges whether one process limits a key that is far above its threshold.
type Enforcement struct {
	Key, Process string
	// Deadline is the longest time until the key is limited (again).
	Deadline time.Duration
	// Enough is the number of requests for a violation. They must have passed unlimited, in
	// excess of the limit.
	Enough int

	since       time.Duration // start of the deadline
	passed      int           // requests admitted since the last refusal
	isReported  bool
	suspectedAt time.Duration // time of the first sight of a violation, which may yet be excused
}

// certain is the delay before a violation is reported. A stall of the machine is known only after
// its end.
const certain = time.Second

// Excuse allows the key to be unlimited up to the given time, because it was not hot yet or there
// was a fault.
func (h *Enforcement) Excuse(until time.Duration) {
	if until > h.since {
		h.since, h.passed, h.isReported, h.suspectedAt = until, 0, false, 0
	}
}

// Passed records an admitted request.
func (h *Enforcement) Passed(sent time.Duration) {
	if sent > h.since {
		h.passed++
	}
}

// Refused records a request that the limit refused.
func (h *Enforcement) Refused(sent time.Duration) { h.Excuse(sent) }

// Check returns a violation, once, if the key has been unlimited for too long.
func (h *Enforcement) Check(now time.Duration, stalls *Stalls) *Violation {
	if h.isReported || h.passed < h.Enough || now < stalls.Extended(h.since, h.Deadline, now) {
		return nil
	}
	if h.suspectedAt == 0 {
		h.suspectedAt = now
	}
	if now < h.suspectedAt+certain {
		return nil
	}
	h.isReported = true
	return &Violation{At: now, Invariant: I2, Subject: h.Key + " at " + h.Process, Text: fmt.Sprintf(
		"%d requests let in and none refused for %.2fs, since %.2fs; it has to be limited within %v", h.passed, (now - h.since).Seconds(), h.since.Seconds(), h.Deadline)}
}
