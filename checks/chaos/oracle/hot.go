package oracle

import (
	"fmt"
	"time"
)

// Hot judges whether one process limits a key that is far above its threshold.
type Hot struct {
	Key, Process string
	// Deadline is how long it may take until the key is limited (again).
	Deadline time.Duration
	// Enough is how many requests must have passed unlimited, beyond what the limit
	// allows, for a violation.
	Enough int

	since  time.Duration // the deadline runs from here
	passed int           // let in since the last refusal
	told   bool
	doubt  time.Duration // a violation was seen first, and may yet be excused
}

// certain is how much later than it was seen a violation is reported: a stall of the
// machine is known when it is over.
const certain = time.Second

// Excuse says that up to now the key may be unlimited: it was not hot yet, or there
// was a fault.
func (h *Hot) Excuse(until time.Duration) {
	if until > h.since {
		h.since, h.passed, h.told, h.doubt = until, 0, false, 0
	}
}

// Passed records a request that was let in.
func (h *Hot) Passed(sent time.Duration) {
	if sent > h.since {
		h.passed++
	}
}

// Refused records a request that was refused because of the limit.
func (h *Hot) Refused(sent time.Duration) { h.Excuse(sent) }

// Check returns a violation, once, if the key has been unlimited for too long.
func (h *Hot) Check(now time.Duration, stalls *Stalls) *Violation {
	if h.told || h.passed < h.Enough || now < stalls.Extended(h.since, h.Deadline, now) {
		return nil
	}
	if h.doubt == 0 {
		h.doubt = now
	}
	if now < h.doubt+certain {
		return nil
	}
	h.told = true
	return &Violation{At: now, Invariant: I2, Subject: h.Key + " at " + h.Process, Text: fmt.Sprintf(
		"%d requests let in and none refused for %.2fs, since %.2fs; it has to be limited within %v", h.passed, (now - h.since).Seconds(), h.since.Seconds(), h.Deadline)}
}
