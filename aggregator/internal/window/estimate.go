package window

import "github.com/hotparam/hotparam/internal/published"

// A sampled line, @0.1, represents more counts than were seen. A key is judged by the estimate,
// as it could not be found otherwise, and published with the seen counts. So the window counts
// such a key twice: its estimate in its own entry, and the guessed part of it under another
// hash, in another ordinary entry. Guesses share the window's memory and are evicted like keys.
// A cell then bounds the guess. A key without samples has no second entry, and none is looked
// up.

// guessHash turns a key's hash into the hash of its guesses.
const guessHash = 0x9e3779b97f4a7c15

// AddGuess records that n of the counts added to an entry in a pane were guessed, not seen. It
// may have to evict an entry to make room.
func (w *Window) AddGuess(i int32, pane, n int64) {
	e := w.arena.unit(uint32(i))
	e[entryHist] |= sampled
	hash := e.hash() ^ guessHash
	entry := w.lookup(hash, nil)
	if entry == 0 {
		if entry = w.insert(hash, pane, n); entry == 0 {
			w.addToCell(hash, pane, max(1, n)) // at least 1, so that it is known to be a guess
			return
		}
		w.arena.unit(entry)[entryHist] |= guessed
		w.guesses++
	}
	g := w.arena.unit(entry)
	if g[entryLast] != uint32(pane) {
		w.addAside(entry, g, pane, n)
		return
	}
	before := g[entryCur]
	addTo(&g[entryCur], n)
	g.setSum(g.sum() + int64(g[entryCur]-before))
}

// seen returns a lower bound of the seen counts of an entry in the window that ends with a
// pane, and whether the rest is an estimate.
func (w *Window) seen(i int32, end int64) (low int64, isEstimate bool) {
	e := w.arena.unit(uint32(i))
	low, _ = w.Bounds(i, end)
	if !e.isSampled() {
		return low, false
	}
	hash, panes := e.hash()^guessHash, int64(w.Panes)
	maxGuess := w.cells.bound(hash, end, panes)
	isEstimate = maxGuess > 0
	if entry := w.lookup(hash, nil); entry != 0 {
		g := w.arena.unit(entry)
		maxGuess += w.total(g, end, panes)
		isEstimate = isEstimate || w.recent(g[entryLast]) > end-panes
	}
	if !isEstimate {
		return low, false
	}
	return max(0, low-maxGuess), true
}

// SetSeen lowers the counts of h, which are those of entry i in the window that ends with a
// pane, to the seen counts. An estimate has no upper bound.
func (w *Window) SetSeen(h *published.Hot, i int32, end int64) {
	if low, isEstimate := w.seen(i, end); isEstimate {
		h.Low, h.High, h.Estimated = low, published.Unknown, true
	}
}
