package window

// oldest returns the number of an entry's oldest block, if it has one.
func (w *Window) oldest(e *unit) (block uint32, ok bool) {
	if e.hist() == 0 {
		return 0, false
	}
	return w.arena.unit(e.hist())[blockNext], true
}

func (w *Window) dropOldest(e *unit, block uint32) {
	if block == e.hist() {
		e.setHist(0)
	} else {
		w.arena.unit(e.hist())[blockNext] = w.arena.unit(block)[blockNext]
	}
	w.arena.freeUnit(block)
	e[entryHist] |= loose // the sum may still include the dropped counts
}

// dropBlocks leaves an entry with its newest pane alone.
func (w *Window) dropBlocks(e *unit) {
	for at, ok := w.oldest(e); ok; at, ok = w.oldest(e) {
		w.dropOldest(e, at)
	}
	e[entryHist] &= marks
}

// dropExpired frees the blocks of an entry whose panes have all expired.
func (w *Window) dropExpired(e *unit) (dropped bool) {
	for at, ok := w.oldest(e); ok && w.isExpired(at); at, ok = w.oldest(e) {
		w.dropOldest(e, at)
		dropped = true
	}
	return dropped
}

// isExpired reports whether all panes of a block have expired.
func (w *Window) isExpired(block uint32) bool {
	return w.recent(w.arena.unit(block)[blockStart])+blockPanes <= w.now-w.ring+1
}
