package window

import (
	"sort"

	"github.com/hotparam/hotparam/aggregator/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// resumed are the keys that another process counted before this one began, up to a cut: of
// these it is known what windows hold from before, and of all others it is not. What was sent
// between the cut and the beginning is missing, as [Missing] has it.
type resumed map[uint64]resumedKey // by hash

type resumedKey struct {
	snapshot.Bounds
	newest int64 // the pane at the cut
}

// Save returns the counts of entry i and their bounds, for a window that continues in another
// process. ok is false for estimates from samples: what was not seen of them is not saved.
func (w *Window) Save(i int32) (v snapshot.View, ok bool) {
	e := w.arena.unit(uint32(i))
	if e.isSampled() || w.now == never {
		return v, false
	}
	v.Pane, v.Panes, v.Newest = w.Pane, w.Panes, w.now
	first, hash := w.now-w.ring+1, e.hash()
	w.panes(e, func(pane, n int64) {
		if pane < first || pane > w.now {
			return
		}
		at := sort.Search(len(v.Counts), func(k int) bool { return v.Counts[k].Pane >= pane })
		if at < len(v.Counts) && v.Counts[at].Pane == pane {
			v.Counts[at].N += n
			return
		}
		v.Counts = append(v.Counts, snapshot.Pane{})
		copy(v.Counts[at+1:], v.Counts[at:])
		v.Counts[at] = snapshot.Pane{Pane: pane, N: n}
	})
	lacks := func(from int64) int64 {
		_, high := w.bound(hash, w.Name(i), 0, w.now, w.now-from+1)
		return high
	}
	v.Known = first
	if lacks(first) == rules.Unknown { // what is known of a window is known of those that begin later
		v.Known += int64(sort.Search(int(w.ring), func(k int) bool { return lacks(first+int64(k)) != rules.Unknown }))
	}
	// Windows that begin later lack less, so a few steps are close and never too low. But counts
	// that were healed are in the windows that hold the earliest time that they can be of, and
	// missing in those that begin after that.
	step := max(1, (w.now-v.Known+1)/8)
	healed := w.missing.healedOf(MissingKey{hash, w.rule})
	if healed > 0 || w.resumed != nil {
		step = 1
	}
	for from := v.Known; from <= w.now; from += step {
		n, last := lacks(from), len(v.Lacks)-1
		if last < 0 && n > 0 || last >= 0 && v.Lacks[last].N != n {
			v.Lacks = append(v.Lacks, snapshot.Lack{From: from, N: n})
		}
		if n == 0 && step > 1 {
			break
		}
	}
	v.Later = w.held/2 + healed
	if k, ok := w.resumed[hash]; ok { // what was of later then is of later still
		v.Later += k.Later
	}
	return v, true
}

// Resume adds the counts of a key that another process saved, and the bounds of what it may
// lack beside them. It returns the key's entry, or -1 if there is no room for it: then nothing
// is known of the key as of others.
func (w *Window) Resume(hash uint64, text []byte, v *snapshot.View, from int64) (i int32) {
	i, known := -1, true
	counted, late := w.counted, w.late
	for _, c := range v.Counts {
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
		return -1
	}
	w.GiveName(i, text, from)
	if w.resumed == nil {
		w.resumed = make(resumed)
	}
	w.resumed[hash] = resumedKey{v.Bounds, v.Newest}
	return i
}

// fromBefore returns how many counts from before the window began some panes that end with a
// pane may lack of a key, or [rules.Unknown], and how many of its counts may be of later.
func (w *Window) fromBefore(hash uint64, end, panes int64) (lacks, later int64) {
	first := end - panes + 1
	if w.unheard < first {
		return 0, 0
	}
	k, ok := w.resumed[hash]
	if end < k.newest {
		later = k.Later
	}
	if !ok || first < k.Known {
		return rules.Unknown, later
	}
	for _, l := range k.Lacks {
		if l.From <= first {
			lacks = l.N
		}
	}
	return lacks, later
}

// IsWhole reports whether the window that ends with a pane was heard from its start on, so that
// keys that have no count in it have none.
func (w *Window) IsWhole(end int64) bool { return max(w.lost, w.unheard) <= end-int64(w.Panes) }

// forgetResumed forgets what was counted before the beginning when no window holds it.
func (w *Window) forgetResumed() {
	if w.resumed != nil && w.unheard <= w.now-w.ring {
		w.resumed = nil
	}
}
