package live

import "slices"

// Backlog is the number of events that a view keeps, for readers that are slow or reconnect.
const Backlog = 1000

// addEvents adds events to the backlog. gap reports whether events before them are missing.
func (v *View) addEvents(events []Event, gap bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if gap {
		v.backlog = nil
	}
	v.found += uint64(len(events))
	v.backlog = append(v.backlog, events...)
	if over := len(v.backlog) - Backlog; over > 0 {
		v.backlog = slices.Clone(v.backlog[over:])
	}
}

// EventsAfter returns the events after the first seen ones, the oldest first, and the number of events
// so far, from which a reader goes on. lost is the number of events in between that the view does not
// have any more. [View.Changed] tells when there may be further events.
func (v *View) EventsAfter(seen uint64) (events []Event, found, lost uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	kept := min(v.found-seen, uint64(len(v.backlog)))
	return slices.Clone(v.backlog[uint64(len(v.backlog))-kept:]), v.found, v.found - seen - kept
}

// Seek returns the number of events up to the one with this ID, for [View.EventsAfter], or of all
// so far if the ID is empty. complete is false if the view no longer has all events after it, or if the
// ID is malformed.
func (v *View) Seek(id string) (seen uint64, complete bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if id == "" {
		return v.found, true
	}
	before := v.found - uint64(len(v.backlog))
	last, err := parsePosition(id)
	if err != nil {
		return before, false
	}
	first, known := slices.BinarySearchFunc(v.backlog, last, func(e Event, p position) int { return e.position.compare(p) })
	if known {
		first++
	}
	return before + uint64(first), known
}

// Recent returns the newest n events of the backlog, the oldest first.
func (v *View) Recent(n int) []Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.backlog[max(0, len(v.backlog)-n):])
}
