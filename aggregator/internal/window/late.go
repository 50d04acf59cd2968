package window

// addAside adds to a pane that is not the entry's newest so far.
func (w *Window) addAside(i uint32, e *unit, pane, n int64) (low, end int64) {
	newest := w.recent(e[entryLast])
	if pane > newest {
		w.roll(i, e, pane)
		c := e[entryCur]
		if !addTo(&e[entryCur], n) {
			w.markLostForGood(pane)
		}
		low = e.sum() + int64(e[entryCur]-c)
		e.setSum(low)
		return low, pane
	}
	kept := w.addToOlder(i, e, pane, n, false)
	if pane > newest-int64(w.Panes) {
		e.setSum(e.sum() + kept)
	}
	return w.highest(e, pane)
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
