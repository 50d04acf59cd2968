package aggregator

import "github.com/hotparam/hotparam"

// sum is what an entry has in the window that ends with a pane.
func (w *window) sum(i int32, end int64) int64 {
	return w.total(w.arena.unit(uint32(i)), end, int64(w.Panes))
}

// bounds are the low and high count of an entry in the window that ends with a
// pane; high is hotparam.Unknown if something of the window was lost.
func (w *window) bounds(i int32, end int64) (low, high int64) {
	e := w.arena.unit(uint32(i))
	return w.bound(e.hash(), w.total(e, end, int64(w.Panes)), end, int64(w.Panes))
}

// span is as bounds, for a key with or without an entry and a number of panes
// that end with a pane.
func (w *window) span(hash uint64, text []byte, end, panes int64) (low, high int64) {
	if at := w.lookup(hash, text); at != 0 {
		low = w.total(w.arena.unit(at), end, panes)
	}
	return w.bound(hash, low, end, panes)
}

func (w *window) bound(hash uint64, sum, end, panes int64) (low, high int64) {
	low, high = sum, hotparam.Unknown
	lacks, later := w.lacks(hash, end, panes)
	if end < w.now {
		later += w.held / 2 // see near
	}
	if w.lost <= end-panes && lacks != hotparam.Unknown {
		high = sum + lacks + w.cells.bound(hash, end, panes) + w.hidden.Sum(end, panes) + w.held
	}
	return max(0, low-later), high
}

// lacks is how many counts of a key some panes that end with a pane may lack since
// packets are missing, or hotparam.Unknown, and how many that they have may be of later.
func (w *window) lacks(hash uint64, end, panes int64) (lacks, later int64) {
	if w.missing.isNothing() {
		return 0, 0
	}
	return w.missing.lacks(missingKey{hash, w.rule}, w.Start(end-panes+1).UnixNano(), w.Start(end+1).UnixNano())
}

// lacksOfAny is as lacks of the window that ends with a pane, for all keys together.
func (w *window) lacksOfAny(end int64) shortfall {
	if w.missing.isNothing() {
		return shortfall{}
	}
	return w.missing.any(w.rule, w.Start(end-int64(w.Panes)+1).UnixNano(), w.Start(end+1).UnixNano())
}

// floor is the most that the summary and the collectors can hide of any key in
// the window that ends now. It looks at every cell.
func (w *window) floor() int64 { return w.floorAt(w.now) }

// floorAt is the floor of the window that ends with a pane.
func (w *window) floorAt(end int64) int64 {
	return w.cells.worst(end) + w.hidden.Sum(end, int64(w.Panes)) + w.held
}

// lose makes what is hidden in a pane unknown for good, miss until found tells of
// an older one.
func (w *window) lose(pane int64) {
	w.overflow = max(w.overflow, pane)
	w.miss(pane)
}

func (w *window) miss(pane int64) { w.lost = max(w.lost, pane) }

func (w *window) found(newest int64) { w.lost = max(w.overflow, newest) }

// conceal notes that collectors dropped n in a pane, of any key.
func (w *window) conceal(pane, n int64) { w.hidden.Add(pane, n) }
