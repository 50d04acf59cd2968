package aggregator

import (
	"bytes"
	"math"

	"github.com/hotparam/hotparam"
)

// window counts the keys of one rule in one shard over the rule's window. Every
// key is counted exactly until the memory budget is full; from then on a new
// key takes the place of the key with the smallest count among a few, and what
// was counted of that one goes into a bound that all keys of the same hash cell
// share. So for each key, at any time
//
//	counted ≤ truth ≤ counted + bound of its cell
//
// of which counted is the low count, exact for keys that were never displaced.
// (The cells are those of Filtered Space-Saving, Homem & Carvalho 2010; there
// the cell takes the maximum of what it hides, here the sum, which stays a
// bound when panes leave.)
type window struct {
	hotparam.Window
	ring int64 // panes kept: the window, and the grace that late counts get

	entries []*[entryChunk]entry
	panes   [][]uint32 // of a chunk's entries, ring to each
	n       int        // entries that were made
	live    int        // entries in use
	free    []int32    // entries not in use
	index   index
	hand    int // where the search for a victim goes on

	budget     int64
	maxEntries int
	maxText    int64 // bytes of all texts
	textBytes  int64

	now    int64 // newest pane, by the clock or by a count
	hidden ring  // what collectors hide of any key
	lost   int64 // newest pane that has lost packets
	cells  []ring

	evicted, late int64
}

const (
	entryChunk = 128
	// textShare is what each entry adds to the bytes that all texts share.
	textShare = 64
	// victims is how many entries are looked at to make room for one.
	victims = 16
	never   = math.MinInt64 / 2
)

// entry is one key's count.
type entry struct {
	hash uint64
	text []byte
	used bool
	last int64 // newest pane that holds a count
	sum  int64 // of the window that ends with last
	hot  *hotState
}

// newWindow makes a window that holds at most budget bytes. grace is how many
// panes a count may come late beyond the window.
func newWindow(w hotparam.Window, grace int64, budget int64) *window {
	win := &window{Window: w, ring: int64(w.Panes) + grace, budget: budget, now: never, lost: never}
	win.hidden = newRing(win.ring)
	// A quarter of the budget is set aside for the cells, which are needed when
	// the entries have filled the rest. Entries and texts have a bound each: if
	// they shared one, a time of short texts would make entries that a time of
	// long ones could not give back.
	win.maxEntries = int((budget - budget/4) / (win.entrySize() + textShare))
	win.maxText = int64(win.maxEntries) * textShare
	return win
}

func (w *window) entrySize() int64 { return 64 + 4*w.ring + 8 /* index at half load */ }

// used is how many bytes the entries hold.
func (w *window) used() int64 { return int64(w.live)*w.entrySize() + w.textBytes }

// at is entry i and its ring of panes.
func (w *window) at(i int32) (*entry, []uint32) {
	chunk, off := i/entryChunk, int64(i%entryChunk)
	return &w.entries[chunk][off], w.panes[chunk][off*w.ring : (off+1)*w.ring]
}

// advance tells what time it is.
func (w *window) advance(pane int64) { w.now = max(w.now, pane) }

// add counts n for a key in a pane and returns its entry and the highest count
// that a window with this pane now has, with the pane where that window ends;
// -1 when the pane is no longer kept or no room can be had.
func (w *window) add(hash uint64, text []byte, pane, n int64) (i int32, low, end int64) {
	w.advance(pane)
	if pane <= w.now-w.ring {
		w.late += n
		return -1, 0, 0
	}
	i = w.find(hash, text)
	if i < 0 {
		i = w.insert(hash, text)
	}
	if i < 0 {
		w.hide(hash, pane, n)
		return -1, 0, 0
	}
	e, panes := w.at(i)
	if pane >= e.last {
		w.roll(e, panes, pane)
	}
	p := &panes[w.slot(pane)]
	before := int64(*p)
	if !addTo(p, n) {
		w.lose(pane) // low stays true, high is not known
	}
	if pane > e.last-int64(w.Panes) {
		e.sum += int64(*p) - before
	}
	if pane == e.last {
		return i, e.sum, pane
	}
	low, end = w.highest(e, panes, pane)
	return i, low, end
}

// roll moves an entry on to a newer pane.
func (w *window) roll(e *entry, panes []uint32, pane int64) {
	if pane-e.last >= w.ring {
		clear(panes)
		e.sum = 0
	} else {
		for p := e.last + 1; p <= pane; p++ {
			if out := p - int64(w.Panes); out > e.last-w.ring {
				e.sum -= int64(panes[w.slot(out)])
			}
			panes[w.slot(p)] = 0
		}
	}
	e.last = pane
}

// highest is the highest count of the windows that hold a pane that is not the
// entry's newest, and where that window ends.
func (w *window) highest(e *entry, panes []uint32, pane int64) (best, end int64) {
	best, end = w.sum(e, panes, pane), pane
	sum := best
	for last := pane + 1; last <= min(e.last, pane+int64(w.Panes)-1); last++ {
		sum += int64(panes[w.slot(last)])
		if out := last - int64(w.Panes); out > e.last-w.ring {
			sum -= int64(panes[w.slot(out)])
		}
		if sum > best {
			best, end = sum, last
		}
	}
	return best, end
}

// sum is an entry's count in the window that ends with pane last.
func (w *window) sum(e *entry, panes []uint32, last int64) int64 {
	if last == e.last {
		return e.sum
	}
	sum := int64(0)
	for p := max(last-int64(w.Panes), e.last-w.ring) + 1; p <= min(last, e.last); p++ {
		sum += int64(panes[w.slot(p)])
	}
	return sum
}

// slot is where a pane is kept; panes before 1970 are negative.
func (w *window) slot(pane int64) int64 { return slot(pane, w.ring) }

// bounds are the low and high count of an entry in the window that ends with
// pane last; high is hotparam.Unknown if something of the window was lost.
func (w *window) bounds(i int32, last int64) (low, high int64) {
	e, panes := w.at(i)
	low = w.sum(e, panes, last)
	if w.lost > last-int64(w.Panes) {
		return low, hotparam.Unknown
	}
	high = low + w.hidden.sum(last, int64(w.Panes))
	if w.cells != nil {
		high += w.cell(e.hash).sum(last, int64(w.Panes))
	}
	return low, high
}

// floor is the most that the summary and the collectors can hide of any key in
// the window that ends now.
func (w *window) floor() int64 {
	worst := int64(0)
	for i := range w.cells {
		worst = max(worst, w.cells[i].sum(w.now, int64(w.Panes)))
	}
	return worst + w.hidden.sum(w.now, int64(w.Panes))
}

// insert makes an entry for a key, in the place of others if need be; -1 if
// there is no room because the keys that were looked at are all hot, or because
// the text is longer than all texts together may be.
func (w *window) insert(hash uint64, text []byte) int32 {
	size := int64(len(text))
	if size > w.maxText {
		return -1
	}
	for w.live >= w.maxEntries || w.textBytes+size > w.maxText {
		victim := w.victim()
		if victim < 0 {
			return -1
		}
		w.evict(victim)
	}
	i := w.vacant()
	e, panes := w.at(i)
	clear(panes)
	*e = entry{hash: hash, text: bytes.Clone(text), last: w.now - w.ring, used: true}
	w.live++
	w.textBytes += int64(cap(e.text))
	w.link(i)
	return i
}

// vacant is an entry that is not in use.
func (w *window) vacant() int32 {
	if k := len(w.free); k > 0 {
		i := w.free[k-1]
		w.free = w.free[:k-1]
		return i
	}
	if w.n%entryChunk == 0 {
		w.entries = append(w.entries, new([entryChunk]entry))
		w.panes = append(w.panes, make([]uint32, entryChunk*w.ring))
	}
	w.n++
	return int32(w.n - 1)
}

// victim is the entry with the smallest count among the next few, hot ones
// aside; -1 if there is none.
func (w *window) victim() int32 {
	best, least := int32(-1), int64(math.MaxInt64)
	for looked := 0; looked < victims && looked < w.n; looked++ {
		w.hand = (w.hand + 1) % w.n
		e, _ := w.at(int32(w.hand))
		if !e.used || e.hot != nil {
			continue
		}
		// Of a window that ended a while ago the sum is an upper bound; to add
		// up the panes of each candidate would take longer than all the rest.
		sum := e.sum
		if e.last <= w.now-int64(w.Panes) {
			sum = 0
		}
		if sum < least {
			best, least = int32(w.hand), sum
		}
		if sum == 0 {
			break
		}
	}
	return best
}

// evict puts what an entry counted into its cell and frees it.
func (w *window) evict(i int32) {
	e, panes := w.at(i)
	for p := max(e.last, w.now) - w.ring + 1; p <= e.last; p++ {
		w.hide(e.hash, p, int64(panes[w.slot(p)]))
	}
	w.unlink(i)
	w.textBytes -= int64(cap(e.text))
	*e = entry{}
	w.live--
	w.evicted++
	w.free = append(w.free, i)
}

// hide counts n for a key that has no entry and gets none.
func (w *window) hide(hash uint64, pane, n int64) {
	if n == 0 {
		return
	}
	if w.cells == nil {
		w.makeCells()
	}
	if !w.cell(hash).add(pane, n) {
		w.lose(pane)
	}
}

// lose makes what is hidden in a pane unknown.
func (w *window) lose(pane int64) { w.lost = max(w.lost, pane) }

// conceal notes that collectors hide n in a pane, of any key.
func (w *window) conceal(pane, n int64) {
	if !w.hidden.add(pane, n) {
		w.lose(pane)
	}
}

// restart is an empty window of the same size.
func (w *window) restart() *window {
	return newWindow(w.Window, w.ring-int64(w.Panes), w.budget)
}

func (w *window) makeCells() {
	size := 4*w.ring + 40
	cells := 1
	for 2*int64(cells)*size <= w.budget/4 {
		cells *= 2
	}
	w.cells = make([]ring, cells)
	panes := make([]uint32, int64(cells)*w.ring)
	for i := range w.cells {
		w.cells[i] = ring{last: never, panes: panes[int64(i)*w.ring : int64(i+1)*w.ring]}
	}
}

// cell is the cell of a hash; it takes the high bits, the index the low ones.
func (w *window) cell(hash uint64) *ring {
	return &w.cells[hash>>32&uint64(len(w.cells)-1)]
}
