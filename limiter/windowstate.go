package limiter

import "encoding/binary"

// appendState appends the newest time and, for each slot, the time since the one before and the
// permits. If permits are reserved for a later time, a last number is the time from the newest
// slot to the latest of these.
func (w *window[F]) appendState(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(w.last))
	before := int64(0)
	for i := range w.slots.n {
		s := w.slots.slotAt(i)
		b = binary.AppendUvarint(b, uint64(s.start-before))
		b = binary.AppendUvarint(b, uint64(s.n))
		before = s.start
	}
	if w.due > w.last && w.slots.n > 0 {
		b = binary.AppendUvarint(b, uint64(max(0, w.due-before)))
	}
	return b
}

// besides returns the other views, each as the state of a separate window.
func (w *window[F]) besides() (all []encodedState) {
	for _, o := range w.others {
		q := *o.quota
		q.Penalty = 0
		all = append(all, encodedState{q, (&window[F]{clock: w.clock, view: o}).appendState(nil)})
	}
	return all
}

func (w *window[F]) restoreState(b []byte) bool {
	last, b, ok := cutInt(b, maxNow)
	w.last, w.since = last, 0
	for start := int64(0); ok && len(b) > 0; {
		var since, n int64
		if since, b, ok = cutInt(b, maxNow-start); !ok {
			break
		}
		if len(b) == 0 && w.slots.n > 0 {
			w.due = start + since
			break
		}
		if n, b, ok = cutInt(b, maxFill+maxOwed); !ok {
			break
		}
		start += since
		w.slots.add(slot{start, n})
		if w.total += n; w.total > maxFill+maxOwed {
			return false
		}
	}
	return ok
}

// cutInt cuts a number of at most limit off b.
func cutInt(b []byte, limit int64) (n int64, rest []byte, ok bool) {
	u, size := binary.Uvarint(b)
	if size <= 0 || u > uint64(limit) {
		return 0, nil, false
	}
	return int64(u), b[size:], true
}
