package window

// Add counts n for a key in a pane. It returns the key's entry, the highest count of a window
// with this pane, and the pane where that window ends. It returns -1 if the pane is no longer
// kept or the key gets no entry. Below the count at which keys have texts, the count may be too
// low.
func (w *Window) Add(hash uint64, text []byte, pane, n int64) (i int32, low, end int64) {
	if pane > w.now {
		w.Advance(pane)
	} else if pane <= w.now-w.ring {
		w.late += n
		return -1, 0, 0
	}
	w.counted += n
	if !w.all.IsZero() {
		w.all.Add(pane, n)
	}
	entry := w.lookup(hash, text)
	if entry == 0 {
		if entry = w.insert(hash, pane, n); entry == 0 {
			w.addToCell(hash, pane, n)
			return -1, 0, 0
		}
	}
	e := w.arena.unit(entry)
	if e[entryLast] != uint32(pane) {
		low, end = w.addAside(entry, e, pane, n)
	} else {
		if room := int64(^e[entryCur]); n > room {
			w.markLostForGood(pane) // low stays valid, high becomes unknown
			n = room
		}
		e[entryCur] += uint32(n)
		low, end = e.sum()+n, pane
		e.setSum(low)
	}
	if low >= w.names.text {
		low, end = w.correctLow(entry, e, text, low, end)
	} else if e.isStale() {
		low = int64(e[entryCur])
	}
	return int32(entry), low, end
}

// correctLow handles a key whose count is near a threshold. It gives the key a text, and lowers
// the count of a window that ended before now by the counts that may be misplaced in it. (A window
// that ends now holds all of a send; see heldLater.)
func (w *Window) correctLow(i uint32, e *unit, text []byte, low, end int64) (int64, int64) {
	if uint32(end) == e[entryLast] {
		w.settleSum(e)
		low = e.sum()
	}
	if e[entryName] == 0 && low >= w.names.text {
		w.giveText(i, e, text, low)
	}
	if end < w.now && (w.heldBack > 0 || w.resumed != nil || !w.missing.isNothing()) {
		_, later := w.lossOf(e.hash(), nil, end, int64(w.Panes))
		_, misplaced := w.fromBefore(e.hash(), end, int64(w.Panes))
		low -= w.heldLater() + later + misplaced
		if sum := w.total(e, w.now, int64(w.Panes)); sum >= low {
			return sum, w.now
		}
	}
	return low, end
}

// counterHolding returns the counter of an entry for a pane if it is at least n, or nil.
func (w *Window) counterHolding(e *unit, pane, n int64) *uint32 {
	if pane == w.recent(e[entryLast]) && int64(e[entryCur]) >= n {
		return &e[entryCur]
	}
	for block, more := w.oldest(e); more; {
		b := w.arena.unit(block)
		if k := pane - w.recent(b[blockStart]); 0 <= k && k < blockPanes && int64(b[blockCounts+k]) >= n {
			return &b[blockCounts+k]
		}
		block, more = b[blockNext], block != e.hist()
	}
	return nil
}

// Holds reports whether a key's entry counts at least n in a pane that is kept.
func (w *Window) Holds(hash uint64, text []byte, pane, n int64) bool {
	entry := w.lookup(hash, text)
	return entry != 0 && pane > w.now-w.ring && w.counterHolding(w.arena.unit(entry), pane, n) != nil
}

// Subtract subtracts n from a key's count in a pane. Holds must have returned true for it.
func (w *Window) Subtract(hash uint64, text []byte, pane, n int64) {
	e := w.arena.unit(w.lookup(hash, text))
	c := w.counterHolding(e, pane, n)
	*c -= uint32(n)
	w.counted -= n
	if !w.all.IsZero() {
		w.all.Add(pane, -n)
	}
	if e.hist() != 0 {
		e[entryHist] |= staleSum
	} else {
		e.setSum(e.sum() - n)
	}
}
