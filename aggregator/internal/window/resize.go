package window

import (
	"math"

	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// Begin records that nothing is known of a pane and of those before it. A window that holds
// one of them has no high count.
func (w *Window) Begin(pane int64) { w.lose(pane) }

// Resize returns a window of another budget that holds the same counts. Where that is less
// than they need, keys are evicted first, as by new keys. Entries have other numbers, and
// moved is called with each that has a tag. w must not be used any more.
//
// If the budget is too small even for the tied entries, the window is emptied, and begins after
// the present pane.
func (w *Window) Resize(budget int64, moved func(t *Tag, i int32)) *Window {
	fresh := w.like(budget)
	fresh.now, fresh.hidden, fresh.lost, fresh.overflow = w.now, w.hidden, w.lost, w.overflow
	fresh.counted, fresh.evicted, fresh.late, fresh.names.short = w.counted, w.evicted, w.late, w.names.short
	if !w.shrink(fresh) {
		fresh.Begin(w.now)
		return fresh
	}
	if !fresh.cells.take(&w.cells) {
		fresh.lose(w.now)
	}
	for i := w.arena.next(0); i != 0; i = w.arena.next(i + 1) {
		fresh.copyEntry(w, i, moved)
	}
	fresh.evicted = w.evicted
	return fresh
}

// shrink evicts keys until what is left fits into another window. It returns false if that
// cannot be.
func (w *Window) shrink(into *Window) bool {
	for w.arena.used > into.arena.most {
		v := w.victim(0)
		if v == 0 {
			return false
		}
		w.evict(v)
	}
	for k := range w.names.all {
		if w.names.bytes <= into.names.most {
			return true
		}
		if n := &w.names.all[k]; n.entry != 0 && !n.pinned() {
			w.unname(w.arena.unit(n.entry))
			into.names.short = w.now
		}
	}
	return w.names.bytes <= into.names.most
}

// copyEntry copies an entry of another window, for which there is room.
func (w *Window) copyEntry(of *Window, i uint32, moved func(t *Tag, i int32)) {
	from, at := of.arena.unit(i), w.arena.take()
	e := w.arena.unit(at)
	*e = *from
	e.setHist(0)
	e[entryName] = 0
	w.arena.setEntry(at, true)
	w.index.put(e.hash(), at)
	w.live++
	if e.isGuess() {
		w.guesses++
	}
	for b, more := of.oldest(from); more; {
		block := of.arena.unit(b)
		w.appendBlock(e, block)
		b, more = block[blockNext], b != from.hist()
	}
	if k := from[entryName]; k != 0 {
		n := of.names.all[k-1]
		n.entry = at
		w.names.all = append(w.names.all, n)
		w.names.bytes += n.size()
		e[entryName] = uint32(len(w.names.all))
		if n.tag != nil {
			moved(n.tag, int32(at))
		}
	}
}

// appendBlock appends a copy of a block to those of an entry.
func (w *Window) appendBlock(e, block *unit) {
	at := w.arena.take()
	b := w.arena.unit(at)
	*b = *block
	if newest := e.hist(); newest == 0 {
		b[blockNext] = at
	} else {
		last := w.arena.unit(newest)
		b[blockNext], last[blockNext] = last[blockNext], at
	}
	e.setHist(at)
}

// take fills empty cells of the same panes with what others hide: each with that of all whose
// keys it may have. It returns false if a cell cannot hold so much.
func (c *cells) take(of *cells) bool {
	if of.all == nil {
		return true
	}
	c.all, c.base, c.sum, c.stale = make([]cell, c.most), of.base, cell64{}, 0
	n, fits := uint64(len(c.all)), true
	for i := range c.all {
		// What of returns of a hash is its fraction of 2³² times the number of cells.
		low := (uint64(i)<<32 + n - 1) / n
		high := (uint64(i+1)<<32+n-1)/n - 1
		first, last := low*uint64(len(of.all))>>32, high*uint64(len(of.all))>>32
		newest := int64(0)
		for j := first; j <= last; j++ {
			newest = max(newest, int64(of.all[j][0]))
		}
		for span := max(0, newest-cellSpans+1); span <= newest; span++ {
			sum := int64(0)
			for j := first; j <= last; j++ {
				sum += of.all[j].bound(span, span)
			}
			fits = c.all[i].add(span, sum) && fits
			c.sum.add(span, sum)
		}
	}
	return fits
}

// Resize returns a history of another budget that holds the same counts.
func (h *History) Resize(budget int64) *History {
	of := *h
	of.Window = h.Window.Resize(budget, nil)
	return &of
}

// BeginAt records that the window's panes before one are no part of a baseline.
func (h *History) BeginAt(pane int64) {
	if h.began == math.MaxInt64 || h.began < pane {
		h.began = pane
	}
}

// Resize sets how many bytes the groups may hold, at a pane. If they hold more, they begin
// anew after that.
func (g *Groups) Resize(budget, now int64) {
	if g.budget = budget; g.Used() > budget {
		*g = *g.Restart()
		g.Begin(now)
	}
}

// Begin records that nothing is known of a pane and of those before it.
func (g *Groups) Begin(pane int64) { g.before = max(g.before, pane) }

// Resize is [Groups.Resize] for totals.
func (t *Totals) Resize(budget, now int64) {
	if t.max = int(max(1, budget/(totalSize+8*t.panes))); len(t.byRoute) > t.max {
		*t = *t.Restart()
		t.Begin(now)
	}
}

// Begin is [Groups.Begin] for totals.
func (t *Totals) Begin(pane int64) { t.before = max(t.before, pane) }

// Resize is [Groups.Resize] for repeats.
func (r *Repeats) Resize(budget, now int64) {
	if r.max = int(max(1, budget/(repeatSize+8*r.panes))); len(r.byGroup) > r.max {
		*r = *r.Restart()
		r.Begin(now)
	}
}

// Begin is [Groups.Begin] for repeats.
func (r *Repeats) Begin(pane int64) { r.before = max(r.before, pane) }

// never is the pane before all others.
const never = ring.Never

// Forget forgets what is known of the keys of rules that are gone.
func (m *Missing) Forget(isGone func(rule int) bool) {
	m.changes++
	for key := range m.keys {
		if isGone(key.Rule) {
			delete(m.keys, key)
		}
	}
}
