package window

import "math"

// An entry counts one key: its hash, the count of the newest pane that has one,
// the sum of the window that ends with that pane, and the panes before it, as
// long as they are kept, in blocks of six. A block begins with the pane that
// needed it first; blocks are a ring by their next, from the oldest to the
// newest, which hist names. What a cold key takes is the entry alone. Panes are
// written by the low half of their number.
//
// While the sum is far from a threshold, what leaves the window is not taken off
// it: that would mean to read the oldest block, which is in no cache, each time a
// pane turns. Such a sum is loose: a bound, made exact before it is used.

// Places in a unit.
const (
	entryLast = 4 // newest pane
	entryCur  = 5 // its count
	entryHist = 6 // newest block; 0: none. Its highest bit: the sum is loose; two more: see estimate.go
	entryName = 7 // number in names; 0: none

	blockStart  = 0 // first pane
	blockNext   = 1 // the next newer block; of the newest the oldest
	blockCounts = 2 // of the panes from the first on

	blockPanes = 6
	loose      = 1 << 31
)

func (e *unit) hash() uint64 { return uint64(e[0]) | uint64(e[1])<<32 }

func (e *unit) setHash(h uint64) { e[0], e[1] = uint32(h), uint32(h>>32) }

func (e *unit) sum() int64 { return int64(uint64(e[2]) | uint64(e[3])<<32) }

func (e *unit) setSum(n int64) { e[2], e[3] = uint32(n), uint32(uint64(n)>>32) }

func (e *unit) hist() uint32 { return e[entryHist] &^ (loose | marks) }

func (e *unit) setHist(at uint32) { e[entryHist] = e[entryHist]&(loose|marks) | at }

func (e *unit) loose() bool { return e[entryHist]&loose != 0 }

// recent is the number of a pane that is not newer than the newest, by its low
// half.
func (w *Window) recent(low uint32) int64 { return w.now - int64(uint32(w.now)-low) }

// present is what an entry counts in the window that ends now, or more: what left
// since the entry's newest pane is in it.
func (w *Window) present(e *unit) int64 {
	if w.recent(e[entryLast]) <= w.now-int64(w.Panes) {
		return 0
	}
	w.settle(e)
	return e.sum()
}

// settle makes a loose sum exact.
func (w *Window) settle(e *unit) {
	if !e.loose() {
		return
	}
	w.dropOver(e)
	sum, left := int64(0), w.recent(e[entryLast])-int64(w.Panes)
	w.panes(e, func(pane, n int64) {
		if pane > left {
			sum += n
		}
	})
	e.setSum(sum)
	e[entryHist] &^= loose
}

// dropOver frees an entry's blocks of which nothing is kept any more.
func (w *Window) dropOver(e *unit) (dropped bool) {
	for at, ok := w.oldest(e); ok && w.isOver(at); at, ok = w.oldest(e) {
		w.dropOldest(e, at)
		dropped = true
	}
	return dropped
}

// isOver tells whether no pane of a block is kept any more.
func (w *Window) isOver(at uint32) bool {
	return w.recent(w.arena.unit(at)[blockStart])+blockPanes <= w.now-w.ring+1
}

// roll moves an entry on to a newer pane.
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
		e[entryHist] &^= loose
	case e.hist() == 0 || e.loose():
	case e.sum() < w.names.from:
		e[entryHist] |= loose
	default:
		w.leave(e, newest-int64(w.Panes), left)
	}
	if n != 0 && newest > pane-w.ring {
		w.keep(i, e, newest, int64(n), newest > left)
	}
}

// leave takes the panes after from, up to to, off an entry's sum.
func (w *Window) leave(e *unit, from, to int64) {
	sum := e.sum()
	for at, more := w.oldest(e); more; {
		b := w.arena.unit(at)
		first := w.recent(b[blockStart])
		if first > to {
			break
		}
		for k, n := range b[blockCounts:] {
			if p := first + int64(k); p > from && p <= to {
				sum -= int64(n)
			}
		}
		before := at
		at, more = b[blockNext], at != e.hist()
		if w.isOver(before) {
			w.dropOldest(e, before)
		}
	}
	e.setSum(sum)
}

// keep adds n to a pane that is not an entry's newest; if there is no room the
// cell takes it. counted tells that the sum holds n; it is true of n that was the
// newest pane's and is in the window. keep tells how much was kept.
func (w *Window) keep(i uint32, e *unit, pane, n int64, counted bool) int64 {
	c := w.place(i, e, pane)
	kept := int64(0)
	if c != nil {
		before := *c
		if !addTo(c, n) {
			w.lose(pane) // low stays true, high is not known
		}
		kept = int64(*c - before)
	} else {
		w.hide(e.hash(), pane, n)
	}
	if counted {
		e.setSum(e.sum() - n + kept)
	}
	return kept
}

// place is where an entry counts a pane that is not its newest; nil if a block
// is needed for it and there is none for a key of so few counts.
func (w *Window) place(i uint32, e *unit, pane int64) *uint32 {
	newest := e.hist()
	after, first := newest, pane+1 // the block that a new one would come behind
	if newest != 0 {
		b := w.arena.unit(newest)
		if first = w.recent(b[blockStart]); first > pane { // late: from the oldest on
			for at := b[blockNext]; ; {
				older := w.arena.unit(at)
				f := w.recent(older[blockStart])
				if f > pane {
					break // the newest at last
				}
				after, first, b, at = at, f, older, older[blockNext]
			}
		}
		if first <= pane && pane-first < blockPanes {
			return &b[blockCounts+pane-first]
		}
	}
	if w.dropOver(e) {
		return w.place(i, e, pane) // after may be gone
	}
	at := w.room(i, e)
	if at == 0 {
		return nil
	}
	b := w.arena.unit(at)
	*b = unit{blockStart: uint32(pane), blockNext: at}
	if newest != 0 {
		behind := w.arena.unit(after)
		b[blockNext], behind[blockNext] = behind[blockNext], at
	}
	if newest == 0 || after == newest && first <= pane {
		e.setHist(at)
	}
	return &b[blockCounts]
}

// room is a unit for a block of an entry, in the place of an entry that counts
// less if need be; 0 if there is none.
func (w *Window) room(i uint32, e *unit) uint32 {
	if at := w.arena.take(); at != 0 {
		return at
	}
	v := w.victim(i)
	if v == 0 || w.present(w.arena.unit(v)) >= max(e.sum(), 1) {
		return 0
	}
	w.evict(v)
	return w.arena.take()
}

// oldest is the number of an entry's oldest block, if it has one.
func (w *Window) oldest(e *unit) (at uint32, ok bool) {
	if e.hist() == 0 {
		return 0, false
	}
	return w.arena.unit(e.hist())[blockNext], true
}

func (w *Window) dropOldest(e *unit, at uint32) {
	if at == e.hist() {
		e.setHist(0)
	} else {
		w.arena.unit(e.hist())[blockNext] = w.arena.unit(at)[blockNext]
	}
	w.arena.give(at)
	e[entryHist] |= loose // the sum may still hold what was dropped
}

// dropBlocks leaves an entry with its newest pane alone.
func (w *Window) dropBlocks(e *unit) {
	for at, ok := w.oldest(e); ok; at, ok = w.oldest(e) {
		w.dropOldest(e, at)
	}
	e[entryHist] &= marks
}

// panes calls f with what an entry counts in each pane that has a count, the
// newest last. Of one pane it may be told in parts.
func (w *Window) panes(e *unit, f func(pane, n int64)) {
	for at, more := w.oldest(e); more; {
		b := w.arena.unit(at)
		for k, n := range b[blockCounts:] {
			if n != 0 {
				f(w.recent(b[blockStart])+int64(k), int64(n))
			}
		}
		at, more = b[blockNext], at != e.hist()
	}
	if e[entryCur] != 0 {
		f(w.recent(e[entryLast]), int64(e[entryCur]))
	}
}

// total is an entry's count in some panes that end with pane end.
func (w *Window) total(e *unit, end, panes int64) (sum int64) {
	if panes == int64(w.Panes) && uint32(end) == e[entryLast] && end <= w.now {
		w.settle(e)
		return e.sum()
	}
	w.panes(e, func(pane, n int64) {
		if pane <= end && pane > end-panes {
			sum += n
		}
	})
	return sum
}

// highest is the highest count of the windows that hold a pane, and where that
// window ends.
func (w *Window) highest(e *unit, pane int64) (best, end int64) {
	newest := w.recent(e[entryLast])
	kept := w.kept // by pane, from the oldest that is kept on
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

// addTo adds n to a pane, which stays at its highest when it is full.
func addTo(pane *uint32, n int64) bool {
	room := int64(math.MaxUint32 - *pane)
	*pane += uint32(min(n, room))
	return n <= room
}
