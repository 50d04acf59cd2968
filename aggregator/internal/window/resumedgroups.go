package window

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/internal/snapshot"
)

// resumedGroups bounds the missing counts of totals saved by another process, of all keys
// together.
type resumedGroups struct {
	resumedKey
	again bool // whether some of the counts were subtracted from a total
}

// hasAgain reports whether counts that another process subtracted from a total may be missing.
func (r *resumedGroups) hasAgain() bool { return r != nil && r.again }

// savedGroups is the most groups of a window that are saved.
const savedGroups = 256

// Newest returns the newest pane that has a count, at least that of the window.
func (g *Groups) Newest(w *Window) int64 {
	return max(w.now, g.all.Last, g.all.again.Last, g.strays.again.Last)
}

// Save returns the totals of the window w up to the newest pane, for groups that continue in
// another process. It returns nil if they are too high for a snapshot. If there are many
// groups, the smallest are saved as strays.
func (g *Groups) Save(w *Window, newest int64) *snapshot.GroupTotals {
	s := &snapshot.GroupTotals{Strays: savedGroup("", &g.strays), AllAgain: savedPanes(&g.all.again)}
	for name, counts := range g.byName {
		s.Named = append(s.Named, savedGroup(name, counts))
	}
	slices.SortFunc(s.Named, func(a, b snapshot.Group) int {
		return cmp.Or(cmp.Compare(sumOf(b.Counts), sumOf(a.Counts)), slices.Compare(a.Name, b.Name))
	})
	for len(s.Named) > savedGroups {
		last := len(s.Named) - 1
		s.Strays.Counts = addPanes(s.Strays.Counts, s.Named[last].Counts)
		s.Strays.Again = addPanes(s.Strays.Again, s.Named[last].Again)
		s.Named = s.Named[:last]
	}
	s.Bounds = g.bounds(w, newest)
	if highest := max(s.MaxLack(), s.Later, g.all.Sum(newest, g.panes)); highest > snapshot.MaxTotal {
		return nil
	}
	return s
}

// bounds returns the counts that windows may lack if they begin at a pane or later and end with
// the newest.
func (g *Groups) bounds(w *Window, newest int64) (b snapshot.Bounds) {
	b.Known = max(newest-g.panes+1, w.lost+1, g.before+1)
	if m := w.missing; m != nil && m.from != math.MinInt64 {
		b.Known = max(b.Known, w.Index(time.Unix(0, m.from))+1)
	}
	resumed := int64(0)
	switch {
	case w.beforeStart < b.Known:
	case g.resumed == nil:
		b.Known = w.beforeStart + 1
	default:
		b.Known, resumed = max(b.Known, g.resumed.Known), g.resumed.MaxLack()
	}
	if b.Known > newest || w.heldOutsideGroups > 0 {
		b.Known = newest + 1
	}
	end, step := w.Start(newest+1).UnixNano(), max(1, (newest-b.Known+1)/8)
	b.Later = w.missing.lossAfter(w.rule, w.Start(newest-g.panes+1).UnixNano(), end).later
	if g.resumed != nil && w.beforeStart > newest-g.panes {
		b.Later += g.resumed.Later
	}
	for from := b.Known; from <= newest; from += step {
		s := w.missing.lossAfter(w.rule, w.Start(from).UnixNano(), end)
		n := w.hidden.Sum(newest, newest-from+1) + s.lacks + s.heldBack + s.before
		if from <= w.beforeStart {
			n += resumed
		}
		b.AddLack(from, n)
	}
	return b
}

// Resume adds the totals of the window w that another process saved. It does nothing if groups
// have counts of a part of the process's time only.
func (g *Groups) Resume(w *Window, s *snapshot.GroupTotals, newest int64) {
	if s == nil || g.before != never {
		return
	}
	for i := range s.Named {
		saved := &s.Named[i]
		g.name = append(g.name[:0], saved.Name...)
		to := g.groupNamed(true)
		if to != nil && len(saved.Again) > 0 && !g.makeAgain(to) {
			to = nil
		}
		g.resumeGroup(to, saved)
	}
	g.resumeGroup(nil, &s.Strays)
	for _, c := range s.AllAgain {
		g.takeOffAll(c.Pane, c.N)
	}
	g.resumed = &resumedGroups{resumedKey{s.Bounds, newest}, len(s.AllAgain)+len(s.Strays.Again) > 0}
}

// resumeGroup adds the counts of a group. If to is nil, they become strays.
func (g *Groups) resumeGroup(to *groupCounts, saved *snapshot.Group) {
	for _, c := range saved.Counts {
		g.addTo(to, c.Pane, c.N)
	}
	if to == nil {
		to = &g.strays
	}
	for _, c := range saved.Again {
		to.again.Add(c.Pane, c.N)
	}
}

// fromBefore returns how many counts from before the window began totals may lack in the window
// that ends with a pane, or [published.Unknown], and how many may be later.
func (g *Groups) fromBefore(w *Window, last int64) (lacks, later int64) {
	switch first := last - int64(w.Panes) + 1; {
	case w.beforeStart < first:
		return 0, 0
	case g.resumed == nil:
		return published.Unknown, 0
	default:
		return g.resumed.lacks(last, first)
	}
}

func savedGroup(name string, counts *groupCounts) snapshot.Group {
	return snapshot.Group{Name: []byte(name), Counts: savedPanes(&counts.Counts), Again: savedPanes(&counts.again)}
}

func savedPanes(counts *ring.Counts) (all []snapshot.Pane) {
	counts.Each(func(pane, n int64) { all = append(all, snapshot.Pane{Pane: pane, N: n}) })
	return all
}

func sumOf(all []snapshot.Pane) (sum int64) {
	for _, c := range all {
		sum += c.N
	}
	return sum
}

// addPanes returns the sums of a and b by pane.
func addPanes(a, b []snapshot.Pane) []snapshot.Pane {
	for _, c := range b {
		a = addPane(a, c.Pane, c.N)
	}
	return a
}

// addPane adds n to a pane of all, which are ascending.
func addPane(all []snapshot.Pane, pane, n int64) []snapshot.Pane {
	i, ok := slices.BinarySearchFunc(all, pane, func(c snapshot.Pane, pane int64) int { return cmp.Compare(c.Pane, pane) })
	if ok {
		all[i].N += n
		return all
	}
	return slices.Insert(all, i, snapshot.Pane{Pane: pane, N: n})
}
