package decode

import "time"

// lateness tracks a sender's minimum delay, by its own clock, over the last one to two slots.
// The minimum ignores single delayed packets and counts that were held back. A sender that is
// always late has a slow clock or a slow connection, and short windows lose its counts.
type lateness struct {
	least, before time.Duration // least age in this slot and in the previous one
	ends          time.Time     // end of the slot
}

const (
	latenessSlot = 1500 * time.Millisecond
	// lateAfter is how old counts may be on arrival and still be placed in any window.
	lateAfter = DefaultGrace
)

// recordAge records the age of a packet's counts.
func (l *lateness) recordAge(age time.Duration, now time.Time) {
	if now.Before(l.ends) {
		l.least = min(l.least, age)
		return
	}
	l.before = 0 // the lateness of a new or silent sender is unknown yet
	if !l.ends.IsZero() && now.Sub(l.ends) < latenessSlot {
		l.before = l.least
	}
	l.least, l.ends = age, now.Add(latenessSlot)
}

// age returns the least age of the last one to two slots.
func (l *lateness) age() time.Duration { return min(l.least, l.before) }
