package limiter

import (
	"slices"
	"sort"
)

// slot is a span of time, identified by its beginning in ns, and the permits that count in it.
type slot struct{ start, n int64 }

// slotLog is a queue of slots in order of time. An empty log keeps little room.
type slotLog struct {
	all  []slot
	gone int // slots at the beginning of all that were removed
}

// minRoom is the room that an empty log may keep.
const minRoom = 16

// live returns the slots. They are valid until the log changes.
func (l *slotLog) live() []slot { return l.all[l.gone:] }

func (l *slotLog) len() int { return len(l.all) - l.gone }

// newest returns the last slot in time. There must be one.
func (l *slotLog) newest() *slot { return &l.all[len(l.all)-1] }

// after returns the number of slots that begin by t, the index of the first that begins after
// it.
func (l *slotLog) after(t int64) int {
	slots := l.live()
	if len(slots) > 0 && slots[len(slots)-1].start <= t { // the common case
		return len(slots)
	}
	return sort.Search(len(slots), func(i int) bool { return slots[i].start > t })
}

// add adds the permits of s to the slot of its time, which it makes if there is none.
func (l *slotLog) add(s slot) {
	i := l.gone + l.after(s.start)
	if i > l.gone && l.all[i-1].start == s.start {
		l.all[i-1].n += s.n
		return
	}
	if len(l.all) == cap(l.all) && l.gone > len(l.all)/16 { // rather than to grow
		l.all, i, l.gone = l.all[:copy(l.all, l.live())], i-l.gone, 0
	}
	l.all = slices.Insert(l.all, i, s)
}

// pop removes the oldest slot and returns it.
func (l *slotLog) pop() slot {
	s := l.all[l.gone]
	l.gone++
	l.shrink()
	return s
}

// remove removes the i-th slot in time.
func (l *slotLog) remove(i int) {
	l.all = slices.Delete(l.all, l.gone+i, l.gone+i+1)
	l.shrink()
}

// shrink empties a log without slots, and frees much room.
func (l *slotLog) shrink() {
	switch {
	case l.len() > 0:
	case cap(l.all) > minRoom:
		*l = slotLog{}
	default:
		l.all, l.gone = l.all[:0], 0
	}
}

// copied returns an independent log with the same slots.
func (l *slotLog) copied() slotLog { return slotLog{all: slices.Clone(l.live())} }
