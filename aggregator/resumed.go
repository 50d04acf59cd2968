package aggregator

import (
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// saveReference copies the counts that the keys of v are compared with: totals of groups, and a
// bound of the keys without an entry in saved, the entries that the snapshot has.
func (v *view) saveReference(saved map[int32]bool) snapshot.ReferenceValues {
	r := snapshot.ReferenceValues{Rule: v.watch.number, WindowShape: snapshot.WindowShape{Pane: v.Pane, Panes: v.Panes, Newest: v.Now()}}
	if v.groups != nil {
		r.Newest = v.groups.Newest(v.Window)
		r.Groups = v.groups.Save(v.Window, r.Newest)
	}
	r.Others.Known = r.Newest + 1
	if v.has(rules.Top) {
		highest := int64(0)
		v.Each(0, func(i int32) {
			if !saved[i] {
				highest = max(highest, v.Sum(i, v.Now()))
			}
		})
		r.Others = v.SaveOthers(highest)
	}
	return r
}

// addReference adds a shard's reference to the snapshot.
func addReference(s *snapshot.Snapshot, r *snapshot.ReferenceValues) {
	i := slices.IndexFunc(s.References, func(other snapshot.ReferenceValues) bool {
		return other.Rule == r.Rule && other.Pane == r.Pane && other.Panes == r.Panes
	})
	if i < 0 {
		s.References = append(s.References, *r)
		return
	}
	// Two shards have this window, so the rule has no home (see homes) and does not compare keys.
	// Its reference says only how far the window was counted.
	merged := &s.References[i]
	merged.Newest = max(merged.Newest, r.Newest)
	merged.Others, merged.Groups = snapshot.Bounds{Known: merged.Newest + 1}, nil
}

// resumeReference continues the values that keys of another process were compared with.
func (d *Detector) resumeReference(r *snapshot.ReferenceValues) {
	v := d.viewOf(r.Rule, r.Pane, r.Panes)
	if v == nil {
		return
	}
	v.ResumeOthers(&r.Others)
	if v.groups != nil {
		v.groups.Resume(v.Window, r.Groups, r.Newest)
	}
}

// savedMark is the state of a key that a threshold held hot in the previous process.
type savedMark struct {
	below, until time.Time // all windows that ended between these times were below the exit
	view         *snapshot.WindowCounts
}

// findSaved returns the previous process's state of a key under t, or nil.
func (t *threshold) findSaved(text string) *savedMark {
	view := t.view.saved[text]
	if view == nil {
		return nil
	}
	terms := t.exitTerms()
	for _, b := range view.Below {
		if b.Of == terms {
			return &savedMark{b.Since, b.Until, view}
		}
	}
	return nil
}

// wasBelow reports whether all windows that ended after s.until and before pane were below the exit.
// It proves this by upper bounds of the key's counts. exit is the exit of the window that ends with
// pane.
func (s *savedMark) wasBelow(w *watched, t *threshold, pane, exit int64) bool {
	v := t.view
	for last := pane - 1; last >= v.Index(s.until); last-- {
		if last <= v.Now()-v.Kept() { // no pane of it, or of earlier windows, is kept
			if t.Kind != rules.FixedRate {
				exit = t.ExitCount(t.Rate.N) // the exit for the lowest reference
			}
			return s.upperBound(w, v, v.Index(s.until)-int64(v.Panes)+1, pane) < uint64(exit)
		}
		// If only a part of a window is kept, the counts that the key is compared with are
		// underestimated. The exit is then too low, so the key may cool later but not too early.
		if s.upperBound(w, v, last-int64(v.Panes)+1, last) >= uint64(w.exitEarlier(t, last)) {
			return false
		}
	}
	return true
}

// upperBound returns an upper bound of w's count from pane first to pane last, or [math.MaxUint64]
// if it is unknown. Panes that are no longer kept have their counts from the snapshot.
func (s *savedMark) upperBound(w *watched, v *view, first, last int64) uint64 {
	kept := max(first, v.Now()-v.Kept()+1)
	_, high := v.Span(w.hash, []byte(w.text), last, last-kept+1)
	if high == published.Unknown || kept > first && (kept > s.view.Newest+1 || first < s.view.Known) {
		return math.MaxUint64
	}
	if kept == first {
		return uint64(high)
	}
	for _, c := range s.view.Counts {
		if first <= c.Pane && c.Pane < kept {
			high += c.N
		}
	}
	return uint64(high + s.view.MaxLack())
}

// exitEarlier returns the exit of w by t in a window before the newest.
func (w *watched) exitEarlier(t *threshold, pane int64) int64 {
	if t.Kind == rules.Top {
		n, ranking := t.needsAt(t.Rate.N), t.rankEarlier(pane)
		t.ranked(&n, w.entries[t.view.number], &ranking)
		return n.exit
	}
	return w.needs(t, pane).exit
}
