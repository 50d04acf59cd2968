package limiter

import "encoding/binary"

// appendState appends w.last, and for each slot the time since the previous slot and its permits.
// If permits are reserved for a time after w.last, it appends the time from the newest slot to the
// latest of them. That number has no partner, which is how restoreState finds it.
func (w *window[F]) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(w.last))
	before := int64(0)
	for _, s := range w.slots.live() {
		b = binary.AppendUvarint(b, uint64(s.start-before))
		b = binary.AppendUvarint(b, uint64(s.n))
		before = s.start
	}
	if w.due > w.last && w.slots.len() > 0 {
		b = binary.AppendUvarint(b, uint64(max(0, w.due-before)))
	}
	return b
}

// encodeOthers returns the views of the other quotas, each as the state of a window of its own.
func (w *window[F]) encodeOthers() (all []encodedState) {
	for _, o := range w.others {
		q := *o.quota
		q.Penalty = 0 // the key's first state has the lock
		all = append(all, encodedState{q, (&window[F]{clock: w.clock, windowView: o}).appendState(nil)})
	}
	return all
}

// restoreState sets w to the state that appendState wrote, and reports whether b is one.
func (w *window[F]) restoreState(b []byte) bool {
	last, b, ok := cutInt(b, maxNow)
	w.last, w.since = last, 0
	for start := int64(0); ok && len(b) > 0; {
		var gap, n int64
		if gap, b, ok = cutInt(b, maxNow-start); !ok {
			break
		}
		if len(b) == 0 && w.slots.len() > 0 {
			w.due = start + gap
			break
		}
		if n, b, ok = cutInt(b, maxFill+maxOwed); !ok {
			break
		}
		start += gap
		w.slots.add(slot{start, n})
		if w.total += n; w.total > maxFill+maxOwed {
			return false
		}
	}
	return ok
}

// cutInt cuts a number of at most limit off b.
func cutInt(b []byte, limit int64) (n int64, tail []byte, ok bool) {
	u, size := binary.Uvarint(b)
	if size <= 0 || u > uint64(limit) {
		return 0, nil, false
	}
	return int64(u), b[size:], true
}
