package window

import (
	"math"
	"sort"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
)

// resumed bounds the counts that another process received before this one began.
//
// That process saved a snapshot at an instant, the cut. For each key near a threshold it has the
// counts by pane, and how many counts windows may lack in addition (Save). For all other keys it
// has one bound (SaveOthers). This process adds the saved counts to its own, and keeps the bounds
// until no window holds panes from before its beginning (forgetResumed). The counts sent between
// the cut and the beginning are missing, and recorded in [Missing].
type resumed struct {
	keys   map[uint64]*resumedKey // saved keys by hash
	others snapshot.Bounds        // bounds of all other keys
	// A saved key that has lost its entry may lack as much as any other. maximum is the highest
	// lack of all saved keys, in windows that begin at the pane known or later.
	maximum, known int64
}

type resumedKey struct {
	snapshot.Bounds
	newest int64 // pane at the cut
}

// Save returns the counts of entry i and their bounds, for a window that continues in another
// process. ok is false for estimates from samples, since their guessed part is not saved.
func (w *Window) Save(i int32) (saved snapshot.Counted, ok bool) {
	e := w.arena.unit(uint32(i))
	if e.isSampled() || w.now == never {
		return saved, false
	}
	saved.WindowShape = snapshot.WindowShape{Pane: w.Pane, Panes: w.Panes, Newest: w.now}
	saved.Counts, saved.Bounds = w.save(e, w.Name(i), w.now-w.ring+1, true)
	return saved, true
}

// save returns the counts of an entry from the pane first on, and the bounds of windows that
// begin there or later and end now. If exact is false, the bounds are as close as a few steps
// make them.
func (w *Window) save(e *unit, text []byte, first int64, exact bool) (counts []snapshot.Pane, b snapshot.Bounds) {
	hash := e.hash()
	w.panes(e, func(pane, n int64) {
		if first <= pane && pane <= w.now {
			counts = addPane(counts, pane, n)
		}
	})
	lacks := func(from int64) int64 {
		_, high := w.bound(hash, text, 0, w.now, w.now-from+1)
		return high
	}
	b.Known = first
	if lacks(first) == published.Unknown { // if the bound of a window is known, so are those of later ones
		b.Known += int64(sort.Search(int(w.now-first)+1, func(k int) bool { return lacks(first+int64(k)) != published.Unknown }))
	}
	// The lack of a window that begins at one step bounds all windows up to the next step, since
	// windows that begin later lack less. Healed counts are an exception: they are placed at the
	// earliest possible time, and windows that begin after that lack them. So the lacks in k, which
	// an earlier process saved, are an exception, too. If exact is set and there may be exceptions,
	// each pane is a step. Otherwise the most that they can add is added to each step.
	step, healedLack := max(1, (w.now-b.Known+1)/8), int64(0)
	k, healed := w.resumedKey(hash), w.missing.countPlaced(MissingKey{hash, w.rule})
	if exact && (healed > 0 || w.resumed != nil) {
		step = 1
	} else {
		healedLack = healed
	}
	for from := b.Known; from <= w.now; from += step {
		n := lacks(from) + healedLack
		if step > 1 && k != nil && from <= w.beforeStart {
			resumedRise := k.MaxLack() - k.LackFrom(from)
			n += resumedRise
		}
		if b.AddLack(from, n); n == 0 && step > 1 && w.resumed == nil {
			break
		}
	}
	b.Later = w.heldLater() + healed
	if k != nil { // counts that may have been later then may still be
		b.Later += k.Later
	}
	return counts, b
}

// Resume adds the saved counts of a key from another process, and the bounds of its further
// counts. It returns the key's entry, or -1 if there is no room for it. Then the high count of
// the key is unknown in windows that hold panes from before.
func (w *Window) Resume(hash uint64, text []byte, saved *snapshot.Counted) (i int32) {
	k := &resumedKey{saved.Bounds, saved.Newest}
	i, known := -1, true
	counted, late := w.counted, w.late
	for _, c := range saved.Counts {
		if c.Pane <= w.now-w.ring {
			continue // no window that is evaluated holds it
		}
		i, _, _ = w.Add(hash, text, c.Pane, c.N)
		known = known && i >= 0
	}
	w.counted, w.late = counted, late
	if i < 0 && known {
		i, _, _ = w.Add(hash, text, w.now, 0)
	}
	if i < 0 || !known {
		i, k.Known = -1, math.MaxInt64
	}
	r := w.resuming()
	r.keys[hash] = k
	r.maximum, r.known = max(r.maximum, k.MaxLack()), max(r.known, k.Known)
	return i
}

func (w *Window) resuming() *resumed {
	if w.resumed == nil {
		w.resumed = &resumed{keys: make(map[uint64]*resumedKey), others: snapshot.Bounds{Known: math.MaxInt64}, known: never}
	}
	return w.resumed
}

// SaveOthers bounds the counts of any key that is not saved, in the window that ends now. A key
// among these that has a text counts at most n there, apart from its hidden counts.
func (w *Window) SaveOthers(n int64) (b snapshot.Bounds) {
	first := w.now - int64(w.Panes) + 1
	lost, resumed := w.lossOfAny(w.now), w.Unlisted(w.now)
	if w.NamesRanOut(w.now) || w.guesses > 0 || w.lost >= first || lost.lacks == published.Unknown || resumed == published.Unknown {
		return snapshot.Bounds{Known: w.now + 1}
	}
	b.Known = first
	counted := max(n, w.names.unnamedFrom(w.now-w.ring)-1) // with a text, or without one
	hidden := w.Floor()
	b.AddLack(first, counted+hidden+lost.lacks+lost.before+resumed)
	return b
}

// ResumeOthers sets the bounds of the keys that are not in a snapshot.
func (w *Window) ResumeOthers(b *snapshot.Bounds) { w.resuming().others = *b }

// Unlisted returns how many counts from before this process began any one key may have without
// being counted in an entry, in the window that ends with a pane. It may be [published.Unknown].
func (w *Window) Unlisted(end int64) int64 {
	first := end - int64(w.Panes) + 1
	switch r := w.resumed; {
	case w.beforeStart < first:
		return 0
	case r == nil || first < r.known || first < r.others.Known:
		return published.Unknown
	default:
		return max(r.maximum, r.others.MaxLack())
	}
}

// fromBefore returns two bounds for the counts of a key from before this process began, in some
// panes that end with the pane end. lacks is how many may be missing there, or [published.Unknown].
// later is how many of the counted ones may belong after end.
func (w *Window) fromBefore(hash uint64, end, panes int64) (lacks, later int64) {
	first := end - panes + 1
	switch k, r := w.resumedKey(hash), w.resumed; {
	case w.beforeStart < first:
		return 0, 0
	case k != nil:
		return k.lacks(end, first)
	case r != nil:
		return r.others.LackFrom(first), 0
	}
	return published.Unknown, 0
}

// resumedKey returns the bounds of a key saved by another process, or nil.
func (w *Window) resumedKey(hash uint64) *resumedKey {
	if w.resumed == nil {
		return nil
	}
	return w.resumed.keys[hash]
}

// lacks returns how many counts a window from pane first to pane end may lack, and how many of
// its counts may be later.
func (k *resumedKey) lacks(end, first int64) (lacks, later int64) {
	if end < k.newest {
		later = k.Later
	}
	return k.LackFrom(first), later
}

// forgetResumed drops the bounds once no window holds panes from before the beginning.
func (w *Window) forgetResumed() {
	if w.resumed != nil && w.beforeStart <= w.now-w.ring {
		w.resumed = nil
	}
}
