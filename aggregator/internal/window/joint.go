package window

import (
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/wire"
)

// jointBound is what gaps lack together between two statements of a sender's bucket sums. A
// gap can reach over a statement, and then has several, so no gap's part of one is known: a sum
// over gaps is at most all that they point to.
type jointBound struct {
	*decode.Buckets
	gaps  int    // that point to it
	asked uint64 // when left was set, by [Missing.asked]
	left  int64  // for gaps that the present sum has not reached
}

// share sets what a gap lacks together with others. A nil of[0] is nothing known.
func (m *Missing) share(x *missingGap, of [decode.MaxBuckets]*decode.Buckets) {
	for i, old := range x.joint {
		if old == nil {
			continue
		}
		if old.gaps--; old.gaps == 0 {
			delete(m.joint, old.Buckets)
		}
		x.joint[i] = nil
	}
	for i, b := range of {
		if b == nil {
			return
		}
		j := m.joint[b]
		if j == nil {
			j = &jointBound{Buckets: b}
			m.joint[b] = j
		}
		j.gaps++
		x.joint[i] = j
	}
}

// take returns how many of the n loose counts that a gap lacks can be of a key with this hash
// and between these statements, beside those that the same sum has taken.
func (j *jointBound) take(n int64, hash, asked uint64) int64 {
	if j.asked != asked {
		j.asked, j.left = asked, int64(j.Missing[wire.BucketOf(hash, j.Incarnation)])
	}
	n = min(n, j.left)
	j.left -= n
	return n
}
