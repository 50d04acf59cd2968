package aggregator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// origins are the instances that a hot key's counts come from, in the Space-Saving summary of
// Metwally, Agrawal and El Abbadi (2005): a new name replaces the one with the lowest count and
// takes over that count, which is then the error of its own. There is a summary for each half
// of a window, and the last three cover a window. Routes and callers, which instances report
// every second, have the same summaries.
type origins struct {
	every     time.Duration
	stretches [stretches]stretch // newest first
	unseen    int64              // part of the key's count in the window that precedes the stretches
	seen      time.Time          // end of the last pane of that part
}

type stretch struct {
	began time.Time
	originSummary
}

// stretches of half a window cover a window, wherever it ends.
const stretches = 3

// maxOrigins is the most names of a summary.
const maxOrigins = 32

type originSummary []published.Origin

// add counts n for a name.
func (s *originSummary) add(name string, n int64) {
	least := 0
	for i := range *s {
		o := &(*s)[i]
		if o.Name == name {
			o.Count += n
			return
		}
		if o.Count < (*s)[least].Count {
			least = i
		}
	}
	if len(*s) < maxOrigins {
		*s = append(*s, published.Origin{Name: strings.Clone(name), Count: n})
		return
	}
	o := &(*s)[least]
	*o = published.Origin{Name: strings.Clone(name), Count: o.Count + n, Over: o.Count}
}

// count returns the count of a name, and by how much that may be too high.
func (s originSummary) count(name string) (count, over int64) {
	least := int64(0)
	for i := range s {
		if s[i].Name == name {
			return s[i].Count, s[i].Over
		}
		if len(s) == maxOrigins && (least == 0 || s[i].Count < least) {
			least = s[i].Count
		}
	}
	return least, least // the name may have been replaced
}

// newOrigins returns origins for windows of a span. Their newest stretch begins at an instant.
func newOrigins(span time.Duration, start time.Time) *origins {
	o := &origins{every: span / 2}
	o.restart(start)
	return o
}

// restart empties all stretches. The newest begins at an instant; earlier ones hold counts that
// arrive late.
func (o *origins) restart(start time.Time) {
	for i := range o.stretches {
		o.stretches[i] = stretch{start.Add(-time.Duration(i) * o.every), o.stretches[i].originSummary[:0]}
	}
}

// add counts n for a name in the stretch that holds when.
func (o *origins) add(name string, when time.Time, n int64) {
	newest := &o.stretches[0]
	past := when.Sub(newest.began)
	if past >= stretches*o.every { // all have ended
		o.restart(when)
		past = 0
	}
	for ; past >= o.every; past -= o.every {
		fresh := stretch{newest.began.Add(o.every), o.stretches[stretches-1].originSummary[:0]}
		copy(o.stretches[1:], o.stretches[:stretches-1])
		*newest = fresh
	}
	i := 0
	for i < stretches-1 && when.Before(o.stretches[i].began) {
		i++ // the count is late
	}
	o.stretches[i].add(name, n)
}

// top returns the names with the highest counts since an instant.
func (o *origins) top(from time.Time) []published.Origin {
	if o == nil {
		return nil
	}
	if !from.Before(o.seen) {
		o.unseen = 0
	}
	current := o.stretches[:]
	// Once a stretch ended before from, so did all before it.
	if over := slices.IndexFunc(current, func(s stretch) bool { return !from.Before(s.began.Add(o.every)) }); over >= 0 {
		current = current[:over]
	}
	var all []published.Origin
	for i := range current {
		for _, x := range current[i].originSummary {
			if !slices.ContainsFunc(all, func(y published.Origin) bool { return y.Name == x.Name }) {
				all = append(all, o.sumOf(x.Name, current, from))
			}
		}
	}
	slices.SortFunc(all, func(a, b published.Origin) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), published.MaxOrigins)]
}

// sumOf returns the count of a name in some stretches.
func (o *origins) sumOf(name string, current []stretch, from time.Time) published.Origin {
	sum := published.Origin{Name: name, Count: o.unseen, Over: o.unseen}
	for i := range current {
		count, over := current[i].count(name)
		if current[i].began.Before(from) {
			over = count // it may have left the window
		}
		sum.Count, sum.Over = sum.Count+count, sum.Over+over
	}
	return sum
}
