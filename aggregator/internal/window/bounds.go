package window

import "github.com/hotparam/hotparam/internal/published"

// Sum returns the count of an entry in the window that ends with a pane.
func (w *Window) Sum(i int32, end int64) int64 {
	return w.total(w.arena.unit(uint32(i)), end, int64(w.Panes))
}

// Part returns the count of an entry in the panes from first to last.
func (w *Window) Part(i int32, first, last int64) int64 {
	if last < first {
		return 0
	}
	return w.total(w.arena.unit(uint32(i)), last, last-first+1)
}

// Bounds returns the low and high count of an entry in the window that ends with a pane. high
// is published.Unknown if a part of the window was lost.
func (w *Window) Bounds(i int32, end int64) (low, high int64) {
	e := w.arena.unit(uint32(i))
	return w.bound(e.hash(), nil, w.total(e, end, int64(w.Panes)), end, int64(w.Panes))
}

// Span is like Bounds, for a key with or without an entry and a number of panes that end with
// pane end.
func (w *Window) Span(hash uint64, text []byte, end, panes int64) (low, high int64) {
	if entry := w.lookup(hash, text); entry != 0 {
		low = w.total(w.arena.unit(entry), end, panes)
	}
	return w.bound(hash, text, low, end, panes)
}

func (w *Window) bound(hash uint64, text []byte, sum, end, panes int64) (low, high int64) {
	low, high = w.heardBound(hash, text, sum, end, panes)
	before, misplaced := w.fromBefore(hash, end, panes)
	return max(0, low-misplaced), published.Plus(high, before)
}

// heardBound bounds a key's count without the counts of another process.
func (w *Window) heardBound(hash uint64, text []byte, sum, end, panes int64) (low, high int64) {
	low, high = sum, published.Unknown
	lacks, later := w.lossOf(hash, text, end, panes)
	if end < w.now {
		later += w.heldLater()
	}
	if w.lost <= end-panes && lacks != published.Unknown {
		high = sum + lacks + w.cells.bound(hash, end, panes) + w.hidden.Sum(end, panes) + w.heldBack
	}
	return max(0, low-later), high
}

// heldLater returns how many held-back counts of a key may be placed in a window that ended before
// now and belong after it. All of a send is placed at its oldest part, and at most one send of a
// key straddles the end of the window. That is half of heldBack; the other half bounds the counts
// that are not sent yet.
func (w *Window) heldLater() int64 { return w.heldBack / 2 }

// lossOf returns two bounds for a key in some panes that end with the pane end. lacks is how many
// of its counts may be missing there because packets are missing, or published.Unknown. later is how
// many may belong after end.
func (w *Window) lossOf(hash uint64, text []byte, end, panes int64) (lacks, later int64) {
	if w.missing.isNothing() {
		return 0, 0
	}
	if !w.bucketed {
		text = nil
	}
	return w.missing.boundsFor(MissingKey{hash, w.rule}, text, w.Start(end-panes+1).UnixNano(), w.Start(end+1).UnixNano())
}

// lossOfAny is like lossOf, for all keys together in the window that ends with a pane.
func (w *Window) lossOfAny(end int64) shortfall {
	if w.missing.isNothing() {
		return shortfall{}
	}
	return w.missing.lossOfAny(w.rule, w.Start(end-int64(w.Panes)+1).UnixNano(), w.Start(end+1).UnixNano())
}

// Floor returns the most that the summary and the collectors can hide of any key in the window
// that ends now. It visits every cell.
func (w *Window) Floor() int64 { return w.FloorAt(w.now) }

// FloorAt returns the floor of the window that ends with a pane.
func (w *Window) FloorAt(end int64) int64 {
	return w.cells.worst(end) + w.hidden.Sum(end, int64(w.Panes)) + w.heldBack
}

// markLostForGood makes the bounds of a pane, and of the panes before it, unknown for good.
// MarkLost does so until LimitLoss names an older pane.
func (w *Window) markLostForGood(pane int64) {
	w.overflow = max(w.overflow, pane)
	w.MarkLost(pane)
}

// MarkLost makes the bounds of a pane, and of those before it, unknown.
func (w *Window) MarkLost(pane int64) { w.lost = max(w.lost, pane) }

// LimitLoss makes the bounds after the pane newest known again.
func (w *Window) LimitLoss(newest int64) { w.lost = max(w.overflow, newest) }

// Conceal records that collectors dropped n in a pane, of any key.
func (w *Window) Conceal(pane, n int64) { w.hidden.Add(pane, n) }

// Hash returns the hash of an entry's key.
func (w *Window) Hash(i int32) uint64 { return w.arena.unit(uint32(i)).hash() }

// AtMost returns the most that a key can count in the window that ends with a pane, apart from
// lost packets.
func (w *Window) AtMost(hash uint64, text []byte, end int64) int64 {
	maximum := w.heldBack + w.hidden.Sum(end, int64(w.Panes)) + w.cells.bound(hash, end, int64(w.Panes))
	if entry := w.lookup(hash, text); entry != 0 {
		maximum += w.total(w.arena.unit(entry), end, int64(w.Panes))
	}
	return maximum
}

// HasLosses reports whether the bounds of some window may be apart because of lost packets.
func (w *Window) HasLosses() bool { return !w.missing.isNothing() }

// LacksAny returns how many counts, of all keys together, the window that ends with a pane
// may lack, or [published.Unknown].
func (w *Window) LacksAny(end int64) int64 { return w.lossOfAny(end).lacks }
