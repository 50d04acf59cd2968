package window

// currentBound returns an upper bound of an entry's count in the window that ends now. It still
// includes panes that left the window after the entry's newest pane.
func (w *Window) currentBound(e *unit) int64 {
	if w.recent(e[entryLast]) <= w.now-int64(w.Panes) {
		return 0
	}
	w.settleSum(e)
	return e.sum()
}

// settleSum makes a stale sum exact.
func (w *Window) settleSum(e *unit) {
	if !e.isStale() {
		return
	}
	w.dropExpired(e)
	sum, left := int64(0), w.recent(e[entryLast])-int64(w.Panes)
	w.panes(e, func(pane, n int64) {
		if pane > left {
			sum += n
		}
	})
	e.setSum(sum)
	e[entryHist] &^= staleSum
}

// panes calls f with each count of an entry by pane, the newest last. A pane may be passed in
// parts.
func (w *Window) panes(e *unit, f func(pane, n int64)) {
	for block, more := w.oldest(e); more; {
		b := w.arena.unit(block)
		for k, n := range b[blockCounts:] {
			if n != 0 {
				f(w.recent(b[blockStart])+int64(k), int64(n))
			}
		}
		block, more = b[blockNext], block != e.hist()
	}
	if e[entryCur] != 0 {
		f(w.recent(e[entryLast]), int64(e[entryCur]))
	}
}

// total returns an entry's count in some panes that end with pane end.
func (w *Window) total(e *unit, end, panes int64) (sum int64) {
	if panes == int64(w.Panes) && uint32(end) == e[entryLast] && end <= w.now {
		w.settleSum(e)
		return e.sum()
	}
	w.panes(e, func(pane, n int64) {
		if pane <= end && pane > end-panes {
			sum += n
		}
	})
	return sum
}

// highest returns the highest count of the windows that hold a pane, and the pane where that
// window ends.
func (w *Window) highest(e *unit, pane int64) (best, end int64) {
	newest := w.recent(e[entryLast])
	kept := w.kept // counts by pane, from the oldest kept pane on
	clear(kept)
	base := newest - w.ring + 1
	w.panes(e, func(p, n int64) {
		if p >= base {
			kept[p-base] += n
		}
	})
	sum := int64(0)
	for p := max(pane-int64(w.Panes)+1, base); p <= pane; p++ {
		sum += kept[p-base]
	}
	best, end = sum, pane
	for p := pane + 1; p <= min(newest, pane+int64(w.Panes)-1); p++ {
		sum += kept[p-base]
		if out := p - int64(w.Panes); out >= base {
			sum -= kept[out-base]
		}
		if sum > best {
			best, end = sum, p
		}
	}
	return best, end
}

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
	e[entryHist] |= staleSum // the sum may still include the dropped counts
}

// dropBlocks leaves an entry with its newest pane alone.
func (w *Window) dropBlocks(e *unit) {
	for block, ok := w.oldest(e); ok; block, ok = w.oldest(e) {
		w.dropOldest(e, block)
	}
	e[entryHist] &= marks
}

// dropExpired frees the blocks of an entry whose panes have all expired.
func (w *Window) dropExpired(e *unit) (dropped bool) {
	for block, ok := w.oldest(e); ok && w.isExpired(block); block, ok = w.oldest(e) {
		w.dropOldest(e, block)
		dropped = true
	}
	return dropped
}

// isExpired reports whether all panes of a block have expired.
func (w *Window) isExpired(block uint32) bool {
	return w.recent(w.arena.unit(block)[blockStart])+blockPanes <= w.now-w.ring+1
}
