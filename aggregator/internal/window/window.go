package window

import (
	"time"

	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// Window counts the keys of one rule in one shard over the rule's window. Every key is counted
// exactly until the memory budget is full. From then on a key without an entry is counted in a
// cell that it shares with others. It gets an entry when its cell stands out, and the count of
// the evicted entry is added to that entry's cell. So for each key, at any time
//
//	counted ≤ truth ≤ counted + bound of its cell
//
// where counted is the low count, exact for keys that were never evicted.
type Window struct {
	rules.Window
	ring int64 // number of kept panes: the window, and the grace for late counts

	arena arena
	index index
	names names
	cells cells

	now               int64       // newest pane, by the clock or by a count
	hidden            ring.Counts // counts that collectors dropped, of any key
	all               ring.Counts // counts of all keys; the zero value unless keys are listed
	heldBack          int64       // most counts of any one key that collectors now hold back in a window
	heldOutsideGroups int64       // part of heldBack that collectors do not report by group
	lost              int64       // newest pane whose bounds are unknown
	// beforeStart is the newest pane that began before this process counted. Only keys in resumed
	// have bounds for it and for earlier panes.
	beforeStart int64
	resumed     *resumed // nil without a snapshot

	missing *Missing // lost packets; nil if none can be lost
	rule    int      // number of the window's rule in missing
	// bucketed reports whether the rule has a jump, so that bucket sums cover its loose counts.
	bucketed bool

	overflow int64 // newest pane with a count that was too large to hold

	victimAt uint32 // candidate for the next eviction
	hand     uint32 // where the search for a victim continues
	sweep    uint32 // where the search for expired entries continues
	kept     []int64
	ahead    ahead

	cache paneCache

	budget                 int64
	live                   int // number of entries
	guesses                int // number of entries that hold guesses
	counted, evicted, late int64
}

const (
	// victims is the number of texts that are tried to make room for one.
	victims = 16
	// sweeps is the number of seconds in which all entries are checked for expiry.
	sweeps = 16
)

// paneCache remembers the pane of an instant, since packets have many counts of one instant.
type paneCache struct {
	when time.Time
	pane int64
}

// New returns a window that holds at most budget bytes. grace is the number of panes by which a
// count may be older than the window.
func New(shape rules.Window, grace int64, budget int64) *Window {
	w := &Window{Window: shape, ring: int64(shape.Panes) + grace, now: ring.Never, lost: ring.Never, beforeStart: ring.Never, overflow: ring.Never}
	w.hidden = ring.New(w.ring)
	w.kept = make([]int64, w.ring)
	w.cache = paneCache{pane: w.Index(time.Time{})}
	w.names = names{from: 1, text: 1, short: ring.Never, lowered: ring.Never, noRoom: ring.Never}
	w.allot(budget)
	return w
}

// allot empties the keys of a window, and divides a budget among their parts.
//
// A quarter of it is reserved for the cells, which are needed when the entries have filled the
// rest, and an eighth for texts. With one common bound, a time of short texts would add entries
// that a time of long texts could not free.
func (w *Window) allot(budget int64) {
	w.budget, w.live, w.guesses = budget, 0, 0
	w.victimAt, w.hand, w.sweep = 0, 0, 0
	w.cells = newCells(int64(w.Panes), w.ring, budget/4)
	w.names.all, w.names.free, w.names.hand, w.names.bytes, w.names.maxBytes = nil, nil, 0, 0, maxNames(budget)
	w.arena, w.index = newArena(unitsFor(budget)), newIndex(unitsFor(budget))
}

func maxNames(budget int64) int64 { return budget / 8 }

func unitsFor(budget int64) int {
	return int(min(maxUnits, max(2, (budget-budget/4-maxNames(budget))/unitSize)))
}

// Restart returns an empty window of the same size.
func (w *Window) Restart() *Window {
	fresh := New(w.Window, w.ring-int64(w.Panes), w.budget)
	fresh.names.from, fresh.names.list, fresh.names.text = w.names.from, w.names.list, w.names.text
	fresh.heldBack, fresh.heldOutsideGroups = w.heldBack, w.heldOutsideGroups
	if !w.all.IsZero() {
		fresh.all = ring.New(fresh.ring)
	}
	fresh.missing, fresh.rule, fresh.bucketed = w.missing, w.rule, w.bucketed
	return fresh
}

// Used returns the memory of the keys in bytes.
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

// Advance moves the clock on to a pane. It never goes back.
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

// Keeps reports whether an instant's pane is kept.
func (w *Window) Keeps(when time.Time) bool { return w.Index(when) > w.now-w.ring }

// Find returns the entry of a key, or -1 if there is none.
func (w *Window) Find(hash uint64, text []byte) int32 {
	if entry := w.lookup(hash, text); entry != 0 {
		return int32(entry)
	}
	return -1
}

func (w *Window) lookup(hash uint64, text []byte) uint32 {
	places := w.index.places
	for i := w.index.home(uint32(hash)); ; {
		p := places[i]
		if p == 0 {
			return 0
		}
		if uint32(p>>32) == uint32(hash) {
			e := w.arena.unit(uint32(p))
			if e.hash() == hash && (e[entryName] == 0 || string(w.names.all[e[entryName]-1].text) == string(text)) {
				return uint32(p)
			}
		}
		if i++; i == len(places) {
			i = 0
		}
	}
}

// Now returns the newest pane, by the clock or by a count.
func (w *Window) Now() int64 { return w.now }

// SetHeld sets the most counts of any one key that collectors now hold back in a window.
// outsideGroups is the part that they do not report by group.
func (w *Window) SetHeld(bound, outsideGroups int64) {
	w.heldBack, w.heldOutsideGroups = bound, outsideGroups
}

// Held returns the most counts of any one key that collectors now hold back in a window.
func (w *Window) Held() int64 { return w.heldBack }

// SetMissing sets m, the record of lost packets, and the number of the window's rule in it.
func (w *Window) SetMissing(m *Missing, rule int) { w.missing, w.rule = m, rule }

// Keys returns the number of keys with a count of their own.
func (w *Window) Keys() int { return w.live - w.guesses }

// Late returns the sum of the counts that were too late for any pane.
func (w *Window) Late() int64 { return w.late }

// Counted returns the sum of all counts that arrived in time.
func (w *Window) Counted() int64 { return w.counted }

// Evicted returns the number of keys that were evicted.
func (w *Window) Evicted() int64 { return w.evicted }

// Budget returns the memory that the window may use, in bytes.
func (w *Window) Budget() int64 { return w.budget }

// Kept returns the number of kept panes.
func (w *Window) Kept() int64 { return w.ring }

// recent returns the number of a pane, at most the newest, by its low half.
func (w *Window) recent(low uint32) int64 { return w.now - int64(uint32(w.now)-low) }
