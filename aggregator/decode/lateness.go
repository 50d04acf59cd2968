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

// How late counts arrive, and how late they may be.
const (
	// DefaultLag is how long counts take to arrive.
	DefaultLag = 250 * time.Millisecond
	// DefaultGrace is how much later than its window a count may arrive and still be
	// placed in it.
	DefaultGrace = 2 * time.Second
)

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

// noteAge records how old a sender's counts were when they came.
func (s *senders) noteAge(from *sender, age time.Duration, now time.Time) {
	from.lateness.note(age, now)
	if age = from.lateness.age(); age <= lateAfter {
		delete(s.late, from.name)
		return
	}
	if s.late == nil {
		s.late = make(map[string]time.Duration)
	}
	s.late[from.name] = age
}

// LateSenders are the instances all of whose counts are older than [DefaultGrace] when they
// arrive: their clocks are slow, or their packets take that long.
type LateSenders struct {
	N      int64         // number of instances
	Latest string        // the one whose counts are oldest
	Age    time.Duration // of its counts
}

// merge adds those of another decoder, which may be the same ones.
func (l *LateSenders) merge(o LateSenders) {
	l.N = max(l.N, o.N)
	if o.Age > l.Age {
		l.Latest, l.Age = o.Latest, o.Age
	}
}

// lateNow returns those that are late.
func (s *senders) lateNow() (l LateSenders) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, age := range s.late {
		l.merge(LateSenders{int64(len(s.late)), name, age})
	}
	return l
}
