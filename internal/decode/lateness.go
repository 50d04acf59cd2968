package decode

import "time"

// lateness is how old a sender's counts are when they arrive, by its own clock: the least age
// of some time, since single packets are held up, and counts that were held back are of an
// earlier time. A sender that is always late has a slow clock, or a long way: short windows
// lose its counts.
type lateness struct {
	least, before time.Duration // in this slot, and in the one before
	ends          time.Time     // of the slot
}

const (
	latenessSlot = 1500 * time.Millisecond
	// lateAfter is how old counts may be on arrival and still be placed in any window.
	lateAfter = DefaultGrace
)

// note records the age of a packet's counts.
func (l *lateness) note(age time.Duration, now time.Time) {
	if now.Before(l.ends) {
		l.least = min(l.least, age)
		return
	}
	l.before = 0 // of a sender that is new, or was silent, nothing is said yet
	if !l.ends.IsZero() && now.Sub(l.ends) < latenessSlot {
		l.before = l.least
	}
	l.least, l.ends = age, now.Add(latenessSlot)
}

// age returns how old counts are at least.
func (l *lateness) age() time.Duration { return min(l.least, l.before) }
