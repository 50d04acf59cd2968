package collector

import "slices"

// ring counts by pane, for a window and one more pane.
type ring struct {
	counts []uint64 // by pane number modulo len(counts)
	newest int64    // pane number
	begun  bool
	sum    uint64 // count of the window that ends with the newest pane

	complete int64 // time when a window that began with new rules is complete, or 0
}

// reset empties the ring for windows of the given number of panes.
func (r *ring) reset(panes int) {
	counts := r.counts[:0]
	if cap(counts) <= panes {
		counts = make([]uint64, panes+1)
	}
	*r = ring{counts: counts[:panes+1]}
	clear(r.counts)
}

// clone returns an independent copy of the ring.
func (r *ring) clone() ring {
	next := *r
	next.counts = slices.Clone(r.counts)
	return next
}

func (r *ring) panes() int64 { return int64(len(r.counts) - 1) }

// count returns the count of a pane.
func (r *ring) count(pane int64) *uint64 {
	size := int64(len(r.counts))
	return &r.counts[(pane%size+size)%size]
}

// add adds n counts to a pane. It ignores counts from before the window.
func (r *ring) add(pane int64, n uint64) {
	if r.begun && pane < r.newest-2*r.panes() { // the clock was set back
		r.reset(int(r.panes()))
	}
	r.advance(pane)
	if pane > r.newest-r.panes() {
		*r.count(pane) += n
		r.sum += n
	}
}

// advance moves the window forward to end with a pane.
func (r *ring) advance(pane int64) {
	switch {
	case !r.begun:
		r.newest, r.begun = pane, true
	case pane-r.newest > r.panes():
		clear(r.counts)
		r.newest, r.sum = pane, 0
	}
	for r.newest < pane {
		r.newest++
		*r.count(r.newest) = 0
		r.sum -= *r.count(r.newest - r.panes())
	}
}

// previousSum returns the count of the window that ended when the newest pane began.
func (r *ring) previousSum() uint64 {
	return r.sum - *r.count(r.newest) + *r.count(r.newest - r.panes())
}
