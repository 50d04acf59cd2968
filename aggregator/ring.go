package aggregator

import "math"

// ring is counts by pane, of the last len(panes) panes.
type ring struct {
	last  int64
	panes []uint32
}

func newRing(panes int64) ring { return ring{last: never, panes: make([]uint32, panes)} }

// add adds n to a pane; one that is too old is not kept. It is false if the
// pane cannot hold so much.
func (r *ring) add(pane, n int64) bool {
	size := int64(len(r.panes))
	if n == 0 || pane <= r.last-size {
		return true
	}
	if pane-r.last >= size {
		clear(r.panes)
		r.last = pane
	}
	for r.last < pane {
		r.last++
		r.panes[slot(r.last, size)] = 0
	}
	return addTo(&r.panes[slot(pane, size)], n)
}

// addTo adds n to a pane, which stays at its highest when it is full.
func addTo(pane *uint32, n int64) bool {
	room := int64(math.MaxUint32 - *pane)
	*pane += uint32(min(n, room))
	return n <= room
}

// sum is the count of the given number of panes that end with last.
func (r *ring) sum(last, panes int64) int64 {
	size := int64(len(r.panes))
	sum := int64(0)
	for p := max(last-panes, r.last-size) + 1; p <= min(last, r.last); p++ {
		sum += int64(r.panes[slot(p, size)])
	}
	return sum
}

// slot is a pane's place among size; panes before 1970 are negative.
func slot(pane, size int64) int64 {
	at := pane % size
	if at < 0 {
		at += size
	}
	return at
}
