package oracle

import "time"

// NamedTrouble is a trouble that processes report themselves, such as in a detail of /-/ready. The
// trouble excuses its consequences for at most Most after a fault.
type NamedTrouble struct {
	Enough int           // number of processes that must report it
	Most   time.Duration // longest time after a fault

	fault time.Duration // end of the last fault, or now during a fault
	names map[string]bool
}

// Fault records that a fault that causes the trouble lasted up to the given time.
func (n *NamedTrouble) Fault(until time.Duration) { n.fault = max(n.fault, until) }

// Sample records whether a process reports the trouble now.
func (n *NamedTrouble) Sample(process string, named bool) {
	if n.names == nil {
		n.names = make(map[string]bool)
	}
	if named {
		n.names[process] = true
	} else {
		delete(n.names, process)
	}
}

// Excuses reports whether enough processes report the trouble, not too long after a fault.
func (n *NamedTrouble) Excuses(now time.Duration, stalls *Stalls) bool {
	return len(n.names) >= n.Enough && n.Within(now, stalls)
}

// Within reports whether the last fault is recent enough for the trouble to persist.
func (n *NamedTrouble) Within(now time.Duration, stalls *Stalls) bool {
	return n.fault > 0 && now < stalls.Extended(n.fault, n.Most, now)
}
