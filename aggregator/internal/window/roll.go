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
	case e.sum() < w.names.text:
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
