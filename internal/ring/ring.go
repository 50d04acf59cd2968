// Package ring holds counts by pane in a ring of the newest panes, and the arithmetic of
// such rings. A pane is one of the equal parts of a window's time ([rules.Window]). Panes are
// numbered by time; those before 1970 are negative.
package ring

import "slices"

// Never is the number of a pane before all others. Differences to other panes do not overflow, as
// those to the least int64 would.
const Never = -1 << 62

// Counts are counts by pane, of the newest panes alone. Each is a sum over many keys, so it has
// 64 bits. The 32 bits of a single key's count would overflow at 71 MB/s, since a pane of an hour's
// window is a minute.
type Counts struct {
	Last  int64 // the newest pane with a count, or Never
	panes []int64
}

// New returns empty counts that keep a number of panes.
func New(panes int64) Counts { return Counts{Last: Never, panes: make([]int64, panes)} }

// Clone returns a copy that shares no memory with r.
func (r *Counts) Clone() Counts { return Counts{r.Last, slices.Clone(r.panes)} }

// Add adds n to a pane. It drops a count whose pane is too old.
func (r *Counts) Add(pane, n int64) {
	size := int64(len(r.panes))
	if n == 0 || pane <= r.Last-size {
		return
	}
	if pane-r.Last >= size {
		clear(r.panes)
		r.Last = pane
	}
	for r.Last < pane {
		r.Last++
		r.panes[Slot(r.Last, size)] = 0
	}
	r.panes[Slot(pane, size)] += n
}

// Sum returns the count of the given number of panes that end with last.
func (r *Counts) Sum(last, panes int64) int64 {
	size := int64(len(r.panes))
	sum := int64(0)
	for p := max(last-panes, r.Last-size) + 1; p <= min(last, r.Last); p++ {
		sum += r.panes[Slot(p, size)]
	}
	return sum
}

// Each calls f with each pane that has a count, the oldest first.
func (r *Counts) Each(f func(pane, n int64)) {
	size := int64(len(r.panes))
	for p := r.Last - size + 1; p <= r.Last; p++ {
		if n := r.panes[Slot(p, size)]; n != 0 {
			f(p, n)
		}
	}
}

// IsZero reports whether r is the zero value, which keeps no panes.
func (r *Counts) IsZero() bool { return r.panes == nil }

// Slot returns a pane's place in a ring of size panes.
func Slot(pane, size int64) int64 {
	slot := pane % size
	if slot < 0 {
		slot += size
	}
	return slot
}
