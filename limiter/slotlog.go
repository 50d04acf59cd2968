package limiter

import "slices"

// slot is a span of time, identified by its beginning in ns, and the permits that count in it.
type slot struct{ start, n int64 }

// slotLog is a queue of slots in order of time, in a ring that grows as needed. An empty log
// keeps little room.
type slotLog struct {
	ring []slot
	head int // index of the oldest slot
	n    int
}

// minRing is the room that an empty log may keep.
const minRing = 16

// slotAt returns the i-th slot in time. i must be below n.
func (l *slotLog) slotAt(i int) *slot {
	if i += l.head; i >= len(l.ring) {
		i -= len(l.ring)
	}
	return &l.ring[i]
}

// newest returns the last slot in time. There must be one.
func (l *slotLog) newest() *slot { return l.slotAt(l.n - 1) }

// after returns the number of slots that begin by t, the index of the first that begins after
// it.
func (l *slotLog) after(t int64) int {
	if l.n > 0 && l.newest().start <= t { // the common case
		return l.n
	}
	low, high := 0, l.n
	for low < high {
		if mid := (low + high) / 2; l.slotAt(mid).start <= t {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// add adds the permits of s to the slot of its time, which it makes if there is none.
func (l *slotLog) add(s slot) {
	i := l.after(s.start)
	if i > 0 && l.slotAt(i-1).start == s.start {
		l.slotAt(i - 1).n += s.n
		return
	}
	if l.n == len(l.ring) {
		l.grow()
	}
	l.n++
	for j := l.n - 1; j > i; j-- { // only takes before reservations have slots after them
		*l.slotAt(j) = *l.slotAt(j - 1)
	}
	*l.slotAt(i) = s
}

func (l *slotLog) grow() {
	ring := make([]slot, max(1, 2*len(l.ring)))
	copied := copy(ring, l.ring[l.head:])
	copy(ring[copied:], l.ring[:l.head])
	l.ring, l.head = ring, 0
}

// pop removes the oldest slot and returns it.
func (l *slotLog) pop() slot {
	s := *l.slotAt(0)
	if l.head++; l.head == len(l.ring) {
		l.head = 0
	}
	l.shrunk()
	return s
}

// remove removes the i-th slot in time.
func (l *slotLog) remove(i int) {
	for ; i < l.n-1; i++ {
		*l.slotAt(i) = *l.slotAt(i + 1)
	}
	l.shrunk()
}

// shrunk counts one slot less, and frees a large ring when it is empty.
func (l *slotLog) shrunk() {
	if l.n--; l.n == 0 && len(l.ring) > minRing {
		*l = slotLog{}
	}
}

// copied returns an independent log with the same slots.
func (l *slotLog) copied() slotLog {
	return slotLog{ring: slices.Clone(l.ring), head: l.head, n: l.n}
}
