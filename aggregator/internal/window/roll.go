package window

// roll makes pane the newest of an entry. The entry's own counter then holds that pane. The count
// of the previous newest pane moves to a block (see unit). Panes that leave the window are
// subtracted from the entry's sum. If the sum is far from a threshold, it is marked as stale
// instead, which saves the read of the blocks.
func (w *Window) roll(i uint32, e *unit, pane int64) {
	newest, n := w.recent(e[entryLast]), e[entryCur]
	e[entryLast], e[entryCur] = uint32(pane), 0
	if pane-newest >= w.ring {
		w.dropBlocks(e)
		e.setSum(0)
		return
	}
	left := pane - int64(w.Panes)
	switch {
	case newest <= left:
		e.setSum(0)
		e[entryHist] &^= staleSum
	case e.hist() == 0 || e.isStale():
	case e.sum() < w.names.from:
		e[entryHist] |= staleSum
	default:
		w.subtractPanes(e, newest-int64(w.Panes), left)
	}
	if n != 0 && newest > pane-w.ring {
		w.addToOlder(i, e, newest, int64(n), newest > left)
	}
}

// subtractPanes subtracts the counts of the panes after from, up to to, from an entry's sum. It
// frees blocks whose panes have all expired.
func (w *Window) subtractPanes(e *unit, from, to int64) {
	sum := e.sum()
	for block, more := w.oldest(e); more; {
		b := w.arena.unit(block)
		first := w.recent(b[blockStart])
		if first > to {
			break
		}
		for k, n := range b[blockCounts:] {
			if p := first + int64(k); p > from && p <= to {
				sum -= int64(n)
			}
		}
		before := block
		block, more = b[blockNext], block != e.hist()
		if w.isExpired(before) {
			w.dropOldest(e, before)
		}
	}
	e.setSum(sum)
}

// addToOlder adds n to a pane that is older than an entry's newest. If there is no room for a
// block, it adds n to the key's cell. It returns the amount added to the entry. counted reports
// whether the entry's sum already includes n, as when roll moves the count of the newest pane.
func (w *Window) addToOlder(i uint32, e *unit, pane, n int64, counted bool) int64 {
	c := w.olderCounter(i, e, pane)
	kept := int64(0)
	if c != nil {
		before := *c
		if !addTo(c, n) {
			w.markLostForGood(pane) // low stays valid, high becomes unknown
		}
		kept = int64(*c - before)
	} else {
		w.addToCell(e.hash(), pane, n)
	}
	if counted {
		e.setSum(e.sum() - n + kept)
	}
	return kept
}

// olderCounter returns the counter of an entry for a pane that is older than its newest. It
// returns nil if that needs a block, and no unit is free or can be evicted for so low a count.
func (w *Window) olderCounter(i uint32, e *unit, pane int64) *uint32 {
	newest := e.hist()
	after, first := newest, pane+1 // after is the block after which a new one is inserted
	if newest != 0 {
		b := w.arena.unit(newest)
		if first = w.recent(b[blockStart]); first > pane { // the pane is before the newest block, so search from the oldest
			for block := b[blockNext]; ; {
				older := w.arena.unit(block)
				f := w.recent(older[blockStart])
				if f > pane {
					break // at the latest, this is the newest block
				}
				after, first, b, block = block, f, older, older[blockNext]
			}
		}
		if first <= pane && pane-first < blockPanes {
			return &b[blockCounts+pane-first]
		}
	}
	if w.dropExpired(e) {
		return w.olderCounter(i, e, pane) // after may have been freed
	}
	added := w.takeBlock(i, e)
	if added == 0 {
		return nil
	}
	b := w.arena.unit(added)
	*b = unit{blockStart: uint32(pane), blockNext: added}
	if newest != 0 {
		behind := w.arena.unit(after)
		b[blockNext], behind[blockNext] = behind[blockNext], added
	}
	if newest == 0 || after == newest && first <= pane {
		e.setHist(added)
	}
	return &b[blockCounts]
}
