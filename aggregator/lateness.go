package aggregator

import "time"

// lateness is how old a sender's counts are when they come, by its own clock: the least
// of some time, since single packets are held up, and counts that were held back are of
// an earlier time. A sender that is late all the time has a clock that is slow, or what
// it sends is on its way for so long: its counts are lost to short windows.
type lateness struct {
	least, before time.Duration // in this slot, and in the one before
	ends          time.Time     // of the slot
}

const (
	latenessSlot = 1500 * time.Millisecond
	// lateAfter is how old counts may be when they come and be placed in any window.
	lateAfter = DefaultGrace
)

// note records the age of a packet's counts.
func (l *lateness) note(age time.Duration, now time.Time) {
	if now.Before(l.ends) {
		l.least = min(l.least, age)
		return
	}
	l.before = age // a sender that is new, or was silent
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

// latest returns how many senders are late, and which one is the most.
func (s *senders) latest() (n int64, name string, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, age := range s.late {
		if age > by {
			name, by = of, age
		}
	}
	return int64(len(s.late)), name, by
}
