package window

import (
	"cmp"
	"math"
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
)

// BeginAfter records that the counts of a pane and of all panes before it are unknown. A window
// that holds one of them has no high count, except for the keys of [Window.Resume].
func (w *Window) BeginAfter(pane int64) { w.beforeStart = max(w.beforeStart, pane) }

// Resize returns a window with another budget that holds the same counts. If the texts exceed
// their part of it, those of the smallest counts are dropped. If the entries exceed theirs, keys
// are evicted as new keys would evict them. Pinned keys come last in both, and lose their tag with
// their text. Entries get other numbers, and moved is called with each that still has a tag. w
// must not be used afterwards.
func (w *Window) Resize(budget int64, moved func(t *Tag, i int32)) *Window {
	w.keepNames(maxNames(budget))
	w.keepEntries(unitsFor(budget))
	resized := *w
	resized.allot(budget)
	if !resized.cells.fillFrom(&w.cells) {
		resized.markLostForGood(w.now)
	}
	for i := w.arena.next(0); i != 0; i = w.arena.next(i + 1) {
		resized.copyEntry(w, i, moved)
	}
	return &resized
}

// keepNames drops texts until they fit into limit bytes.
func (w *Window) keepNames(limit int64) {
	if w.names.bytes <= limit {
		return
	}
	w.names.short = w.now
	type name struct {
		entry  uint32
		pinned bool
		count  int64
	}
	var all []name
	for k := range w.names.all {
		if n := &w.names.all[k]; n.entry != 0 {
			all = append(all, name{n.entry, n.pinned(), w.currentBound(w.arena.unit(n.entry))})
		}
	}
	slices.SortFunc(all, func(a, b name) int {
		return cmp.Or(base.CompareBool(a.pinned, b.pinned), cmp.Compare(a.count, b.count))
	})
	for _, n := range all {
		if w.names.bytes <= limit {
			return
		}
		w.dropText(w.arena.unit(n.entry))
	}
}

// keepEntries evicts keys until their entries fit into limit units.
func (w *Window) keepEntries(limit int) {
	for w.arena.used > limit {
		v := w.anyVictim()
		if v == 0 { // all of them are pinned
			w.keepNames(w.names.bytes / 2)
			continue
		}
		w.evict(v)
	}
}

// anyVictim is like victim, and finds one wherever it is.
func (w *Window) anyVictim() uint32 {
	for range w.arena.made/looks + 2 {
		if v := w.victim(0); v != 0 {
			return v
		}
	}
	return 0
}

// copyEntry copies an entry of another window, for which there is room.
func (w *Window) copyEntry(source *Window, i uint32, moved func(t *Tag, i int32)) {
	from, entry := source.arena.unit(i), w.arena.takeUnit()
	e := w.arena.unit(entry)
	*e = *from
	e.setHist(0)
	e[entryName] = 0
	w.arena.setEntry(entry, true)
	w.index.add(e.hash(), entry)
	w.live++
	if e.isGuess() {
		w.guesses++
	}
	for b, more := source.oldest(from); more; {
		block := source.arena.unit(b)
		w.appendBlock(e, block)
		b, more = block[blockNext], b != from.hist()
	}
	if k := from[entryName]; k != 0 {
		n := source.names.all[k-1]
		n.entry = entry
		w.names.all = append(w.names.all, n)
		w.names.bytes += n.size()
		e[entryName] = uint32(len(w.names.all))
		if n.tag != nil {
			moved(n.tag, int32(entry))
		}
	}
}

// appendBlock appends a copy of a block to the blocks of an entry.
func (w *Window) appendBlock(e, block *unit) {
	added := w.arena.takeUnit()
	b := w.arena.unit(added)
	*b = *block
	if newest := e.hist(); newest == 0 {
		b[blockNext] = added
	} else {
		last := w.arena.unit(newest)
		b[blockNext], last[blockNext] = last[blockNext], added
	}
	e.setHist(added)
}

// fillFrom fills c, which is empty and has the same panes, with the counts of other cells. Each
// cell gets the counts of all cells that its keys may have had. fillFrom returns false if a cell
// cannot hold so much.
func (c *cells) fillFrom(source *cells) bool {
	if source.all == nil {
		return true
	}
	c.all, c.base, c.sum, c.stale = make([]cell, c.size), source.base, ring.New(cellSpans), 0
	n, fits := uint64(len(c.all)), true
	for i := range c.all {
		// cellOf chooses the cell at a hash's fraction of 2³² times the number of cells.
		low := (uint64(i)<<32 + n - 1) / n
		high := (uint64(i+1)<<32+n-1)/n - 1
		first, last := low*uint64(len(source.all))>>32, high*uint64(len(source.all))>>32
		newest := int64(0)
		for j := first; j <= last; j++ {
			newest = max(newest, int64(source.all[j][0]))
		}
		for span := max(0, newest-cellSpans+1); span <= newest; span++ {
			sum := int64(0)
			for j := first; j <= last; j++ {
				sum += source.all[j].bound(span, span)
			}
			fits = c.all[i].add(span, sum) && fits
			c.sum.Add(span, sum)
		}
	}
	return fits
}

// Resize returns a history with another budget that holds the same counts.
func (h *History) Resize(budget int64) *History {
	resized := *h
	resized.Window = h.Window.Resize(budget, nil)
	return &resized
}

// Start records that the process receives counts of the panes after pane of the window.
func (h *History) Start(pane int64) {
	h.BeginAt(pane + 1)
	h.BeginAfter(base.FloorDiv(pane, h.per))
	h.whole = true
}

// BeginAt excludes the window's panes before a pane from baselines.
func (h *History) BeginAt(pane int64) {
	if h.began == math.MaxInt64 || h.began < pane {
		h.began = pane
	}
}

// Resize sets the memory of the groups in bytes, at pane now. If they hold more, they restart
// empty after that pane.
func (g *Groups) Resize(budget, now int64) {
	if g.budget = budget; g.Used() > budget {
		*g = *g.Restart()
		g.BeginAfter(now)
	}
}

// BeginAfter records that the counts of a pane and of all panes before it are unknown.
func (g *Groups) BeginAfter(pane int64) { g.before = max(g.before, pane) }

// never is the pane before all others.
const never = ring.Never

// Forget forgets the state of keys whose rules were removed.
func (m *Missing) Forget(isGone func(rule int) bool) {
	m.changes++
	for key := range m.keys {
		if isGone(key.Rule) {
			delete(m.keys, key)
		}
	}
}
