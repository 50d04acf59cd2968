package window

// insert adds an entry for a key, and evicts another one if needed. It returns 0 if no entry
// can be evicted for so low a count.
func (w *Window) insert(hash uint64, pane, n int64) uint32 {
	entry := w.arena.takeUnit()
	if entry == 0 {
		v := w.victim(0)
		if v == 0 {
			return 0
		}
		if c := w.currentBound(w.arena.unit(v)); c > 0 && !w.cells.standsOut(hash, w.now, n, c) {
			return 0
		}
		w.evict(v)
		entry = w.arena.takeUnit()
	}
	e := w.arena.unit(entry)
	*e = unit{entryLast: uint32(pane)}
	e.setHash(hash)
	w.arena.setEntry(entry, true)
	w.index.add(hash, entry)
	w.live++
	return entry
}

// victim returns an entry with a small count, other than except, that may be evicted: the
// better of the last candidate and the next few. It returns 0 if there is none.
func (w *Window) victim(except uint32) uint32 {
	best, least := uint32(0), int64(0)
	look := func(i uint32) {
		e := w.arena.unit(i)
		if i == except || w.pinned(e) {
			return
		}
		if c := w.currentBound(e); best == 0 || c < least {
			best, least = i, c
		}
	}
	if v := w.victimAt; v != 0 && w.arena.isEntry(v) {
		look(v)
	}
	for looked := 0; looked < looks && (best == 0 || least > 0); looked++ {
		w.hand = w.arena.next(w.hand + 1)
		if w.hand != 0 {
			look(w.hand)
		}
	}
	w.victimAt = best
	return best
}

// looks is the number of entries that are tried as a victim.
const looks = 4

// evict moves the counts of an entry to its cell and frees the entry.
func (w *Window) evict(i uint32) {
	e := w.arena.unit(i)
	hash, had := e.hash(), false
	w.panes(e, func(pane, n int64) {
		if pane > w.now-w.ring {
			w.addToCell(hash, pane, n)
			had = true
		}
	})
	switch {
	case !e.isGuess():
		if had {
			w.evicted++
		}
	case !had && w.recent(e[entryLast]) > w.now-w.ring:
		w.addToCell(hash, w.recent(e[entryLast]), 1) // as AddGuess does
	}
	w.drop(i, e)
}

// drop frees an entry.
func (w *Window) drop(i uint32, e *unit) {
	if e.isGuess() {
		w.guesses--
	}
	w.dropBlocks(e)
	w.dropText(e)
	w.index.remove(e.hash(), i)
	w.arena.setEntry(i, false)
	w.arena.freeUnit(i)
	w.live--
}

// Tidy frees expired entries, checking a part of them each time. It also drops the texts of
// keys whose count is far from a threshold in all kept windows, as a window of the grace may
// still have to be judged.
func (w *Window) Tidy() {
	w.forgetResumed()
	for range w.arena.made/sweeps + 1 {
		if w.sweep = w.arena.next(w.sweep + 1); w.sweep == 0 {
			break
		}
		if e := w.arena.unit(w.sweep); w.recent(e[entryLast]) <= w.now-w.ring && !w.pinned(e) {
			w.drop(w.sweep, e)
		}
	}
	for k := range w.names.all {
		if n := &w.names.all[k]; n.entry != 0 && n.tag == nil {
			if e := w.arena.unit(n.entry); 4*w.total(e, w.now, w.ring) < w.names.text {
				w.dropText(e)
			}
		}
	}
}

// addToCell counts n for a key that has no entry, or no room for a block.
func (w *Window) addToCell(hash uint64, pane, n int64) {
	if !w.cells.add(hash, pane, n) {
		w.markLostForGood(pane)
	}
}

// takeBlock returns a unit for a block of an entry, or 0. It evicts an entry of a lower count if
// needed.
func (w *Window) takeBlock(i uint32, e *unit) uint32 {
	if block := w.arena.takeUnit(); block != 0 {
		return block
	}
	v := w.victim(i)
	if v == 0 || w.currentBound(w.arena.unit(v)) >= max(e.sum(), 1) {
		return 0
	}
	w.evict(v)
	return w.arena.takeUnit()
}
