package window

// counterHolding returns the counter of an entry for a pane if it is at least n, or nil.
func (w *Window) counterHolding(e *unit, pane, n int64) *uint32 {
	if pane == w.recent(e[entryLast]) && int64(e[entryCur]) >= n {
		return &e[entryCur]
	}
	for at, more := w.oldest(e); more; {
		b := w.arena.unit(at)
		if k := pane - w.recent(b[blockStart]); 0 <= k && k < blockPanes && int64(b[blockCounts+k]) >= n {
			return &b[blockCounts+k]
		}
		at, more = b[blockNext], at != e.hist()
	}
	return nil
}

// Holds reports whether a key's entry counts at least n in a pane that is kept.
func (w *Window) Holds(hash uint64, text []byte, pane, n int64) bool {
	at := w.lookup(hash, text)
	return at != 0 && pane > w.now-w.ring && w.counterHolding(w.arena.unit(at), pane, n) != nil
}

// Subtract subtracts n from a key's count in a pane. Holds must have returned true for it.
func (w *Window) Subtract(hash uint64, text []byte, pane, n int64) {
	e := w.arena.unit(w.lookup(hash, text))
	c := w.counterHolding(e, pane, n)
	*c -= uint32(n)
	w.counted -= n
	if e.hist() != 0 {
		e[entryHist] |= loose
	} else {
		e.setSum(e.sum() - n)
	}
}
