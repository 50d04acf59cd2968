package window

import (
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// jointBound is what gaps lack together between two statements of a sender's sums. No gap's part
// of it is known: a sum over gaps is at most all that they point to.
type jointBound struct {
	*decode.Joint
	gaps  int    // that point to it
	asked uint64 // when left was set, by [Missing.asked]
	left  [jointParts]int64
}

// Parts of what a joint bound has left for gaps that the present sum has not reached. Loose counts
// of gaps with a bound by bucket are a sum of their own, as the lower of two sums over the same
// gaps counts.
const (
	jointBooked = iota
	jointLoose
	jointLooseInBuckets
	jointParts
)

// share sets what a gap lacks together with others. What is nil says nothing new.
func (m *Missing) share(x *missingGap, g *decode.Gap) {
	if g.ByRule != nil {
		m.point(&x.byRule, g.ByRule)
	}
	if g.Buckets[0] != nil {
		for i, b := range g.Buckets {
			m.point(&x.buckets[i], b)
		}
	}
}

// point makes a gap's joint bound that of b. A nil b is none.
func (m *Missing) point(to **jointBound, b *decode.Joint) {
	if old := *to; old != nil {
		if old.gaps--; old.gaps == 0 {
			delete(m.joint, old.Joint)
		}
	}
	if *to = nil; b == nil {
		return
	}
	j := m.joint[b]
	if j == nil {
		j = &jointBound{Joint: b}
		m.joint[b] = j
	}
	j.gaps++
	*to = j
}

// take returns how many of n counts of a rule that a gap lacks can be missing, beside those that
// the same sum has taken. A nil j bounds nothing.
func (j *jointBound) take(n int64, part, rule int, asked uint64) int64 {
	if j == nil || 2*rule+1 >= len(j.Missing) { // the rule is newer
		return n
	}
	if j.asked != asked {
		loose := j.Missing[2*rule]
		j.asked, j.left = asked, [jointParts]int64{j.Missing[2*rule+1], loose, loose}
	}
	return j.takePart(n, part)
}

// takeOfBucket is like take, for loose counts of a key with this hash.
func (j *jointBound) takeOfBucket(n int64, hash, asked uint64) int64 {
	if j.asked != asked {
		j.asked, j.left[jointLoose] = asked, j.Missing[wire.BucketOf(hash, j.Incarnation)]
	}
	return j.takePart(n, jointLoose)
}

func (j *jointBound) takePart(n int64, part int) int64 {
	n = min(n, j.left[part])
	j.left[part] -= n
	return n
}
