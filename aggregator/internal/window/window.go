package window

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// Window counts the keys of one rule in one shard over the rule's window. Every
// key is counted exactly until the memory budget is full. From then on a key
// without an entry is counted in a cell that it shares with others, and gets an
// entry when its cell stands out; the count of the evicted entry is added to its own
// cell. So for each key, at any time
//
//	counted ≤ truth ≤ counted + bound of its cell
//
// of which counted is the low count, exact for keys that were never evicted.
type Window struct {
	hotparam.Window
	ring int64 // panes kept: the window, and the grace that late counts get

	arena arena
	index index
	names names
	cells cells

	now    int64       // newest pane, by the clock or by a count
	hidden ring.Counts // what collectors dropped of any key
	held   int64       // what collectors hold back of any key in a window, for now
	untold int64       // part of it that they do not report by group
	lost   int64       // newest pane of which something is not known

	missing *Missing // packets that were lost on the way; nil if none can be
	rule    int      // in it

	overflow int64 // newest pane of which something was too much to hold

	victimAt uint32 // the candidate to make room
	hand     uint32 // where the search for one goes on
	sweep    uint32 // where the search for expired entries continues
	kept     []int64
	fetched  uint32 // what was read ahead, so that the compiler keeps the reads

	cache paneCache

	budget                 int64
	live                   int // entries
	guesses                int // of these, those of guesses
	counted, evicted, late int64
}

const (
	// victims is how many texts are tried to make room for one.
	victims = 16
	// sweeps is in how many seconds all entries are checked for being expired.
	sweeps = 16
)

// paneCache remembers the pane of an instant: packets have many counts of one.
type paneCache struct {
	when time.Time
	pane int64
}

// New returns a window that holds at most budget bytes. grace is how many panes a count may
// be older than the window.
func New(shape hotparam.Window, grace int64, budget int64) *Window {
	w := &Window{Window: shape, ring: int64(shape.Panes) + grace, budget: budget, now: ring.Never, lost: ring.Never, overflow: ring.Never}
	w.hidden = ring.New(w.ring)
	w.kept = make([]int64, w.ring)
	w.cache = paneCache{pane: w.Index(time.Time{})}
	// A quarter of the budget is set aside for the cells, which are needed when
	// the entries have filled the rest, and an eighth for texts: if they shared
	// one bound, a time of short texts would make entries that a time of long
	// ones could not give back.
	w.cells = newCells(int64(shape.Panes), w.ring, budget/4)
	w.names = names{from: 1, most: budget / 8}
	units := int(min(maxUnits, max(2, (budget-budget/4-budget/8)/unitSize)))
	w.arena = newArena(units)
	w.index = newIndex(units)
	return w
}

// Restart returns an empty window of the same size.
func (w *Window) Restart() *Window {
	fresh := New(w.Window, w.ring-int64(w.Panes), w.budget)
	fresh.names.from, fresh.held, fresh.untold = w.names.from, w.held, w.untold
	fresh.missing, fresh.rule = w.missing, w.rule
	return fresh
}

// Used returns how many bytes the keys hold.
func (w *Window) Used() int64 {
	return int64(w.arena.used)*unitSize + w.names.bytes + int64(len(w.cells.all))*cellSize
}

// PaneOf returns the pane that holds an instant.
func (w *Window) PaneOf(when time.Time) int64 {
	if when != w.cache.when {
		w.cache = paneCache{when, w.Index(when)}
	}
	return w.cache.pane
}

// Advance moves the clock on to a pane; it never goes back.
func (w *Window) Advance(pane int64) {
	if pane <= w.now {
		return
	}
	if pane-w.now > 1<<31 && w.now != ring.Never {
		w.forget(pane)
	}
	w.now = pane
}

// forget empties the entries when the clock jumps so far ahead that the low half of a pane's
// number is ambiguous.
func (w *Window) forget(pane int64) {
	for i := w.arena.next(0); i != 0; i = w.arena.next(i + 1) {
		e := w.arena.unit(i)
		w.dropBlocks(e)
		e.setSum(0)
		e[entryLast], e[entryCur] = uint32(pane-w.ring), 0
	}
	w.cells.reset()
}

// Add counts n for a key in a pane and returns its entry, the highest count of a window with
// this pane, and the pane where that window ends. It returns -1 if the pane is no longer kept
// or the key gets no entry. Below the count at which keys have texts, the count may be too
// low.
func (w *Window) Add(hash uint64, text []byte, pane, n int64) (i int32, low, end int64) {
	if pane > w.now {
		w.Advance(pane)
	} else if pane <= w.now-w.ring {
		w.late += n
		return -1, 0, 0
	}
	w.counted += n
	at := w.lookup(hash, text)
	if at == 0 {
		if at = w.insert(hash, pane, n); at == 0 {
			w.hide(hash, pane, n)
			return -1, 0, 0
		}
	}
	e := w.arena.unit(at)
	if e[entryLast] != uint32(pane) {
		low, end = w.addAside(at, e, pane, n)
	} else {
		if room := int64(^e[entryCur]); n > room {
			w.lose(pane) // low stays true, high is not known
			n = room
		}
		e[entryCur] += uint32(n)
		low, end = e.sum()+n, pane
		e.setSum(low)
	}
	if low >= w.names.from {
		low, end = w.near(at, e, text, low, end)
	} else if e.loose() {
		low = int64(e[entryCur])
	}
	return int32(at), low, end
}

// addAside adds to a pane that is not the entry's newest so far.
func (w *Window) addAside(at uint32, e *unit, pane, n int64) (low, end int64) {
	newest := w.recent(e[entryLast])
	if pane > newest {
		w.roll(at, e, pane)
		c := e[entryCur]
		if !addTo(&e[entryCur], n) {
			w.lose(pane)
		}
		low = e.sum() + int64(e[entryCur]-c)
		e.setSum(low)
		return low, pane
	}
	kept := w.keep(at, e, pane, n, false)
	if pane > newest-int64(w.Panes) {
		e.setSum(e.sum() + kept)
	}
	return w.highest(e, pane)
}

// near takes care of a key whose count is near a threshold: it has a text, and
// what collectors held back is not taken for counts of a window that was over
// before it was sent. (It is placed where its oldest part is, so a window that
// ends now holds all of it, and one that ended before now may hold too much.)
func (w *Window) near(at uint32, e *unit, text []byte, low, end int64) (int64, int64) {
	if uint32(end) == e[entryLast] {
		w.settle(e)
		low = e.sum()
	}
	if e[entryName] == 0 && low >= w.names.from {
		w.call(at, e, text, low)
	}
	if end < w.now && (w.held > 0 || !w.missing.isNothing()) {
		_, later := w.lacks(e.hash(), end, int64(w.Panes))
		low -= w.held/2 + later
		if sum := w.total(e, w.now, int64(w.Panes)); sum >= low {
			return sum, w.now
		}
	}
	return low, end
}

// Keeps reports whether an instant's pane is kept.
func (w *Window) Keeps(when time.Time) bool { return w.Index(when) > w.now-w.ring }

// Find returns the entry of a key, -1 if there is none.
func (w *Window) Find(hash uint64, text []byte) int32 {
	if at := w.lookup(hash, text); at != 0 {
		return int32(at)
	}
	return -1
}

func (w *Window) lookup(hash uint64, text []byte) uint32 {
	places := w.index.places
	for at := w.index.home(uint32(hash)); ; {
		p := places[at]
		if p == 0 {
			return 0
		}
		if uint32(p>>32) == uint32(hash) {
			e := w.arena.unit(uint32(p))
			if e.hash() == hash && (e[entryName] == 0 || string(w.names.all[e[entryName]-1].text) == string(text)) {
				return uint32(p)
			}
		}
		if at++; at == len(places) {
			at = 0
		}
	}
}

// Fetch reads the memory that Add is about to touch for a hash, if the window has at least from
// units. Reading ahead for several keys lets the processor wait for them together.
func (w *Window) Fetch(hash uint64, from int) {
	if w.arena.used >= from {
		w.fetched += w.touch(hash)
	}
}

func (w *Window) touch(hash uint64) (sum uint32) {
	if p := w.index.places[w.index.home(uint32(hash))]; p != 0 {
		e := w.arena.unit(uint32(p))
		if sum = e[entryLast]; sum != uint32(w.now) && e.hist() != 0 {
			sum = w.arena.unit(e.hist())[blockStart]
		}
	}
	if w.cells.all != nil {
		sum += w.cells.of(hash)[0]
	}
	return sum
}

// Now returns the newest pane, by the clock or by a count.
func (w *Window) Now() int64 { return w.now }

// SetHeld sets what collectors hold back of any key in a window by now, and which part of
// it they do not report by group.
func (w *Window) SetHeld(bound, untold int64) { w.held, w.untold = bound, untold }

// Held returns what collectors hold back of any key in a window by now.
func (w *Window) Held() int64 { return w.held }

// SetMissing sets m, which knows what was lost on the way, and the number of the window's
// rule in it.
func (w *Window) SetMissing(m *Missing, rule int) { w.missing, w.rule = m, rule }

// Keys returns how many keys have a count of their own.
func (w *Window) Keys() int { return w.live - w.guesses }

// Late returns how many counts came too late for any pane.
func (w *Window) Late() int64 { return w.late }

// Counted returns the sum of all counts that came in time.
func (w *Window) Counted() int64 { return w.counted }

// Evicted returns how many keys made room for others.
func (w *Window) Evicted() int64 { return w.evicted }

// Budget returns how many bytes the window may hold.
func (w *Window) Budget() int64 { return w.budget }

// Kept returns how many panes are kept.
func (w *Window) Kept() int64 { return w.ring }

// GiveName gives an entry a text, if it has none and there is room beside those of keys that
// count at least sum.
func (w *Window) GiveName(i int32, text []byte, sum int64) {
	if w.Name(i) == nil {
		w.call(uint32(i), w.arena.unit(uint32(i)), text, sum)
	}
}

// LacksAny returns how many counts, of all keys together, the window that ends with a pane
// may lack, or [hotparam.Unknown].
func (w *Window) LacksAny(end int64) int64 { return w.lacksOfAny(end).lacks }
