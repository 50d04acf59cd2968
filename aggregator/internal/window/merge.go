package window

import (
	"cmp"
	"slices"

	"github.com/hotparam/hotparam/internal/decode"
)

// If there are more gaps than there is room for, as with many instances over a long window, the
// older half is merged in pairs. A merged gap lacks the counts of both, at any time from the
// first to the last of them. So the bounds of windows get wider, the more so the older their
// counts, but remain valid. Dropping the oldest gaps made their time unknown, which was too
// much, since a baseline consists of the oldest counts.

// maxMerged bounds the IDs of gaps that are known to be part of a merged one. A further gap
// that is reported again counts once more.
const maxMerged = 32

// makeRoom merges gaps. It reports whether there is room for another one.
func (m *Missing) makeRoom() bool {
	oldest := make([]int, 0, maxMissing)
	for i := range m.gaps {
		oldest = append(oldest, i)
	}
	slices.SortFunc(oldest, func(a, b int) int { return cmp.Compare(m.gaps[a].to, m.gaps[b].to) })
	oldest = oldest[:len(oldest)/2]
	if m.mergePairs(oldest) {
		return true
	}
	for _, i := range oldest { // no two share a sender; without the bounds by bucket, gaps of different senders fit
		for k := range m.gaps[i].buckets {
			m.setJoint(&m.gaps[i].buckets[k], nil)
		}
	}
	return m.mergePairs(oldest)
}

// mergePairs merges gaps, given by their places, that are neighbours in time. If gaps have
// bounds by bucket, it merges those of one sender. It reports whether it merged any.
func (m *Missing) mergePairs(places []int) bool {
	slices.SortFunc(places, func(a, b int) int {
		x, y := &m.gaps[a], &m.gaps[b]
		return cmp.Or(cmp.Compare(x.sender(), y.sender()), cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to))
	})
	var merged [][2]int
	for i := 1; i < len(places); i++ {
		if a, b := places[i-1], places[i]; m.gaps[a].canMerge(&m.gaps[b]) {
			m.merge(&m.gaps[a], &m.gaps[b], a)
			merged = append(merged, [2]int{a, b})
			i++
		}
	}
	for _, k := range m.keys {
		for _, pair := range merged {
			intersect(&k.noLoose, pair[0], pair[1])
			intersect(&k.noBooked, pair[0], pair[1])
		}
	}
	return len(merged) > 0
}

// intersect clears a bit unless the other one is set too.
func intersect(bits *[maxMissing / 64]uint64, bit, other int) {
	if bits[other/64]&(1<<(other%64)) == 0 {
		bits[bit/64] &^= 1 << (bit % 64)
	}
}

// sender returns the incarnation of the sender of a gap with bounds by bucket, or 0.
func (x *missingGap) sender() uint64 {
	if x.buckets[0] == nil {
		return 0
	}
	return x.buckets[0].Incarnation
}

// canMerge reports whether one gap can replace both. A gap of an unknown time would make the time
// of the other unknown.
func (x *missingGap) canMerge(y *missingGap) bool {
	return (x.from <= 1) == (y.from <= 1) && x.sender() == y.sender() && canJoin(x.joints(), y.joints()) &&
		(x.byRule == y.byRule || x.byRule != nil && y.byRule != nil && x.byRule.gaps == 1 && y.byRule.gaps == 1)
}

// joints returns the bounds by bucket.
func (x *missingGap) joints() []*jointBound {
	n := slices.Index(x.buckets[:], nil)
	if n < 0 {
		n = len(x.buckets)
	}
	return x.buckets[:n]
}

// canJoin reports whether two gaps have the same bounds, or each has bounds that no other gap
// shares. Then the sum of the bounds is what both lack.
func canJoin(a, b []*jointBound) bool {
	shared := func(j *jointBound) bool { return j.gaps > 1 }
	return slices.Equal(a, b) || len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, shared) && !slices.ContainsFunc(b, shared)
}

// merge makes x, at a place, include y.
func (m *Missing) merge(x, y *missingGap, place int) {
	if x.byRule != y.byRule {
		n := min(len(x.byRule.Missing), len(y.byRule.Missing)) &^ 1
		j := &decode.Joint{Missing: make([]int64, n)}
		for _, g := range [...]*missingGap{x, y} {
			for i := range j.Missing {
				j.Missing[i] += min(g.byRule.Missing[i], []int64{g.loose, g.booked}[i%2])
			}
		}
		m.setJoint(&x.byRule, j)
	}
	if a, b := x.joints(), y.joints(); !slices.Equal(a, b) {
		j := &decode.Joint{Incarnation: x.sender(), Missing: make([]int64, len(a[0].Missing))}
		for _, joint := range slices.Concat(a, b) {
			for i, n := range joint.Missing {
				j.Missing[i] += n
			}
		}
		for k := range x.buckets {
			m.setJoint(&x.buckets[k], nil)
		}
		m.setJoint(&x.buckets[0], j)
	}
	x.from, x.to = min(x.from, y.from), max(x.to, y.to)
	x.loose, x.booked, x.heldBack = x.loose+y.loose, x.booked+y.booked, x.heldBack+y.heldBack
	m.lastOwnID--
	merged := slices.Concat(x.merged, y.merged)
	for _, g := range [...]*missingGap{x, y} {
		if len(g.merged) == 0 {
			merged = append(merged, g.id)
		}
	}
	m.drop(y)
	delete(m.byID, x.id)
	x.id, x.merged = m.lastOwnID, merged[max(0, len(merged)-maxMerged):]
	for _, id := range merged[:len(merged)-len(x.merged)] {
		delete(m.byID, id)
	}
	for _, id := range x.merged {
		m.byID[id] = place
	}
	m.byID[x.id] = place
}
