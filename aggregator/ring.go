package aggregator

// ring is counts by pane, of the last len(panes) panes. They are of many keys together:
// 32 bits, as single keys have, would be full of bytes at 71 MB/s in the panes of an hour.
type ring struct {
	last  int64
	panes []int64
}

func newRing(panes int64) ring { return ring{last: never, panes: make([]int64, panes)} }

// add adds n to a pane; one that is too old is not kept.
func (r *ring) add(pane, n int64) {
	size := int64(len(r.panes))
	if n == 0 || pane <= r.last-size {
		return
	}
	if pane-r.last >= size {
		clear(r.panes)
		r.last = pane
	}
	for r.last < pane {
		r.last++
		r.panes[slot(r.last, size)] = 0
	}
	r.panes[slot(pane, size)] += n
}

// sum is the count of the given number of panes that end with last.
func (r *ring) sum(last, panes int64) int64 {
	size := int64(len(r.panes))
	sum := int64(0)
	for p := max(last-panes, r.last-size) + 1; p <= min(last, r.last); p++ {
		sum += r.panes[slot(p, size)]
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
