package window

import (
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
)

// boundsFor returns two bounds for a key's counts in the window [start, end). lacks is how many
// lost counts may belong to the window without being counted, or [published.Unknown]. later is how many
// counted ones may belong after it. A nil text ignores the key's bucket.
func (m *Missing) boundsFor(key MissingKey, text []byte, start, end int64) (lacks, later int64) {
	k := m.keys[key]
	before, later := k.healedAround(start, end)
	if start <= m.from {
		return published.Unknown, later
	}
	lacks, _ = m.missingInGaps(k, key.Rule, text, start, end)
	return lacks + before, later
}

// healedAround returns how many healed counts of a key are not counted in the window [start, end)
// and may belong to it, and how many are counted there and may belong after it. A nil k has
// none.
func (k *missingOf) healedAround(start, end int64) (before, later int64) {
	if k == nil {
		return 0, 0
	}
	for _, h := range k.healed {
		if (h.from < start || !h.placed) && h.to >= start {
			before += h.n
		}
		if h.placed && h.from < end && h.to >= end {
			later += h.n
		}
	}
	return before, later
}

// missingInGaps bounds the counts of a rule's key, or of any key if k is nil, that are missing in the
// gaps that overlap [start, end). A gap adds no booked counts of a key if these are counted, and no
// loose ones if it lacks none of the key. Loose counts are bounded by rule and, with a text, by the
// text's bucket; the lower sum counts. heldBack bounds the lost reports of counts held back by group.
func (m *Missing) missingInGaps(k *missingOf, rule int, text []byte, start, end int64) (lacks, heldBack int64) {
	if m.used == 0 {
		return 0, 0
	}
	hash := uint64(0)
	if text != nil {
		hash = wire.BucketHash(text)
	}
	m.asked++                 // a new sum: joint bounds are shared out again
	var loose, byBucket int64 // sums over gaps with bounds by bucket
	for i := range m.gaps {
		x := &m.gaps[i]
		if x.id == 0 || x.to < start || x.from >= end || m.leftOut != nil && m.leftOut[x.id] {
			continue
		}
		heldBack += x.heldBack
		bit := uint64(1) << (i % 64)
		if k == nil || k.noBooked[i/64]&bit == 0 {
			lacks += x.byRule.takeCounts(x.booked, jointBooked, rule, m.asked)
		}
		switch {
		case k != nil && k.noLoose[i/64]&bit != 0:
		case text == nil || x.buckets[0] == nil:
			lacks += x.byRule.takeCounts(x.loose, jointLoose, rule, m.asked)
		default:
			loose += x.byRule.takeCounts(x.loose, jointLooseInBuckets, rule, m.asked)
			for _, j := range x.buckets {
				if j != nil {
					byBucket += j.takeBucketCounts(x.loose, hash, m.asked)
				}
			}
		}
	}
	lacks += min(loose, byBucket)
	return lacks, heldBack
}

// countPlaced returns the number of a key's healed counts that are counted. All may belong to a later
// time.
func (m *Missing) countPlaced(key MissingKey) (n int64) {
	if m == nil || m.keys[key] == nil {
		return 0
	}
	for _, h := range m.keys[key].healed {
		if h.placed {
			n += h.n
		}
	}
	return n
}

// lossOfAny returns the shortfall of the window [start, end), of all keys of a rule together. It
// keeps its last result, since all keys of a window ask for it.
func (m *Missing) lossOfAny(rule int, start, end int64) (s shortfall) {
	if last := &m.last; last.rule == rule && last.start == start && last.end == end && last.changes == m.changes {
		return last.shortfall
	}
	if s.lacks, s.heldBack = m.missingInGaps(nil, rule, nil, start, end); start <= m.from {
		s.lacks = published.Unknown
	}
	for key, k := range m.keys {
		if key.Rule == rule {
			before, later := k.healedAround(start, end)
			s.before, s.later = s.before+before, s.later+later
		}
	}
	m.last = lossSums{rule, start, end, m.changes, s}
	return s
}

// lossAfter returns a shortfall that bounds each window of a rule within [start, end).
func (m *Missing) lossAfter(rule int, start, end int64) (s shortfall) {
	if m.isNothing() {
		return s
	}
	s = m.lossOfAny(rule, start, end)
	s.before, s.later = 0, 0
	for key, k := range m.keys {
		for _, h := range k.healed {
			if key.Rule == rule && h.to >= start {
				s.before += h.n
				if h.placed {
					s.later += h.n
				}
			}
		}
	}
	return s
}
