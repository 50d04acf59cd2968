package oracle

import "time"

// Named is a trouble that processes name themselves, such as in a detail of /-/ready.
// What it explains is excused for some time after a fault, but not for longer.
type Named struct {
	Enough int           // processes that have to name it
	Most   time.Duration // after a fault

	fault time.Duration // its end, or now while it goes on
	names map[string]bool
}

// Fault says that up to now there was a fault that brings the trouble about.
func (n *Named) Fault(until time.Duration) { n.fault = max(n.fault, until) }

// Sample records whether a process names the trouble now.
func (n *Named) Sample(process string, named bool) {
	if n.names == nil {
		n.names = make(map[string]bool)
	}
	if named {
		n.names[process] = true
	} else {
		delete(n.names, process)
	}
}

// Excuses reports whether the trouble is named by enough processes, not too long after
// a fault.
func (n *Named) Excuses(now time.Duration, stalls *Stalls) bool {
	return len(n.names) >= n.Enough && n.Within(now, stalls)
}

// Within reports whether a fault is not too long ago for the trouble to be there still.
func (n *Named) Within(now time.Duration, stalls *Stalls) bool {
	return n.fault > 0 && now < stalls.Extended(n.fault, n.Most, now)
}
