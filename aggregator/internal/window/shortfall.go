package window

import (
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// lacks returns two bounds for a key in a window from start to before end: how many counts the
// window may lack, or [rules.Unknown], and how many of its counts may be later. text is the
// key's, or nil if its bucket does not matter.
func (m *Missing) lacks(key MissingKey, text []byte, start, end int64) (lacks, later int64) {
	k := m.keys[key]
	before, later := k.healedAround(start, end)
	if start <= m.from {
		return rules.Unknown, later
	}
	lacks, _ = m.inGaps(k, key.Rule, text, start, end)
	return lacks + before, later
}

// healedAround returns how many healed counts of a key are not counted in a window from start to
// before end and may belong to it, and how many are counted there and may be later. A nil k has
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

// inGaps returns how many counts are missing in gaps between start and end: of a rule's key, or
// of any key if k is nil. heldBack is the missing amount of counts that were reported as held
// back of groups. A nil text means any key.
func (m *Missing) inGaps(k *missingOf, rule int, text []byte, start, end int64) (lacks, heldBack int64) {
	if m.used == 0 {
		return 0, 0
	}
	hash := uint64(0)
	if text != nil {
		hash = wire.BucketHash(text)
	}
	m.asked++
	var loose, byBucket int64 // sums over gaps with bounds by bucket
	for i := range m.gaps {
		x := &m.gaps[i]
		if x.id == 0 || x.to < start || x.from >= end || m.leftOut != nil && m.leftOut[x.id] {
			continue
		}
		heldBack += x.heldBack
		bit := uint64(1) << (i % 64)
		if k == nil || k.known[i/64]&bit == 0 {
			lacks += x.byRule.takeCounts(x.booked, jointBooked, rule, m.asked)
		}
		switch {
		case k != nil && k.spared[i/64]&bit != 0:
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

// healedOf returns the number of placed healed counts of a key, which may all be later.
func (m *Missing) healedOf(key MissingKey) (n int64) {
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

// lossOfAny bounds the counts that a window of a rule, from start to before end, may lack.
func (m *Missing) lossOfAny(rule int, start, end int64) (s shortfall) {
	if last := &m.last; last.rule == rule && last.start == start && last.end == end && last.changes == m.changes {
		return last.shortfall
	}
	if s.lacks, s.heldBack = m.inGaps(nil, rule, nil, start, end); start <= m.from {
		s.lacks = rules.Unknown
	}
	for key, k := range m.keys {
		if key.Rule == rule {
			before, later := k.healedAround(start, end)
			s.before, s.later = s.before+before, s.later+later
		}
	}
	m.last = sums{rule, start, end, m.changes, s}
	return s
}

// lossAfter is like lossOfAny for all windows that begin at start or later and end before end. It
// bounds each of them.
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
