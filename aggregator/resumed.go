package aggregator

import (
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// saveReference copies the values that the keys of v are compared with. saved has the entries
// that are in the snapshot.
func (v *view) saveReference(saved map[int32]bool) snapshot.Reference {
	r := snapshot.Reference{Rule: v.watch.number, Window: snapshot.Window{Pane: v.Pane, Panes: v.Panes, Newest: v.Now()}}
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

// addReference adds the reference of another shard for the same window.
func addReference(s *snapshot.Snapshot, r *snapshot.Reference) {
	at := slices.IndexFunc(s.References, func(other snapshot.Reference) bool {
		return other.Rule == r.Rule && other.Pane == r.Pane && other.Panes == r.Panes
	})
	if at < 0 {
		s.References = append(s.References, *r)
		return
	}
	// No shard has all keys, so none compares them.
	merged := &s.References[at]
	merged.Newest = max(merged.Newest, r.Newest)
	merged.Others, merged.Groups = snapshot.Bounds{Known: merged.Newest + 1}, nil
}

// resumeReference continues the values that keys of another process were compared with.
func (d *Detector) resumeReference(r *snapshot.Reference) {
	v := d.viewOf(r.Rule, r.Pane, r.Panes)
	if v == nil {
		return
	}
	v.ResumeOthers(&r.Others)
	if v.groups != nil {
		v.groups.Resume(v.Window, r.Groups, r.Newest)
	}
}

// savedMark is the state of a key that t held hot in another process, up to its cut.
type savedMark struct {
	below, until time.Time // windows that ended between these times were below the exit
	view         *snapshot.View
}

// takeSaved returns the saved state of a key by t from another process, or nil.
func (t *threshold) takeSaved(text string) *savedMark {
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

// wasBelow reports whether all windows that ended after those of s, and before the one that ends
// with a pane, were below the exit. exit is that of the latter.
func (s *savedMark) wasBelow(w *watched, t *threshold, pane, exit int64) bool {
	v := t.view
	for last := pane - 1; last >= v.Index(s.until); last-- {
		if last <= v.Now()-v.Kept() { // no pane of it, or of earlier windows, is kept
			if t.Kind != rules.FixedRate {
				exit = t.ExitCount(t.Rate.N) // the exit for the lowest reference
			}
			return s.high(w, v, v.Index(s.until)-int64(v.Panes)+1, pane) < uint64(exit)
		}
		// If a window is kept in part only, the kept part is a lower bound of the counts that
		// the key is compared with.
		if s.high(w, v, last-int64(v.Panes)+1, last) >= uint64(w.exitEarlier(t, last)) {
			return false
		}
	}
	return true
}

// high returns the most that w can count from pane first to pane last, or [math.MaxUint64] if
// it is unknown. Panes that are no longer kept have their counts from the snapshot.
func (s *savedMark) high(w *watched, v *view, first, last int64) uint64 {
	kept := max(first, v.Now()-v.Kept()+1)
	_, high := v.Span(w.hash, []byte(w.text), last, last-kept+1)
	if high == rules.Unknown || kept > first && (kept > s.view.Newest+1 || first < s.view.Known) {
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
	return uint64(high + s.view.Most())
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
