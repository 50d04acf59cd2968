package window

import (
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// jointBound bounds the loss that gaps share between two statements of a sender's sums. The
// part of each gap is unknown, so a sum over gaps is at most the bounds that they point to.
type jointBound struct {
	*decode.Joint
	gaps  int    // number of gaps that point to it
	asked uint64 // value of [Missing.asked] when left was set
	left  [jointParts]int64
}

// Parts of the remainder of a joint bound, for gaps that the current sum has not reached yet.
// Loose counts of gaps with a bound by bucket have their own remainder, as the lower of two
// sums over the same gaps counts.
const (
	jointBooked = iota
	jointLoose
	jointLooseInBuckets
	jointParts
)

// setJoints sets the bounds that a gap shares with others. A nil bound leaves the known one.
func (m *Missing) setJoints(x *missingGap, g *decode.Gap) {
	if g.ByRule != nil {
		m.setJoint(&x.byRule, g.ByRule)
	}
	if g.Buckets[0] != nil {
		for i, b := range g.Buckets {
			m.setJoint(&x.buckets[i], b)
		}
	}
}

// setJoint sets a gap's joint bound to b. A nil b removes it.
func (m *Missing) setJoint(to **jointBound, b *decode.Joint) {
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

// takeCounts returns how many of n counts of a rule, missing in a gap, the bound still allows
// after the counts that the same sum has taken. A nil j bounds nothing.
func (j *jointBound) takeCounts(n int64, part, rule int, asked uint64) int64 {
	if j == nil || 2*rule+1 >= len(j.Missing) { // the rule is newer
		return n
	}
	if j.asked != asked {
		loose := j.Missing[2*rule]
		j.asked, j.left = asked, [jointParts]int64{j.Missing[2*rule+1], loose, loose}
	}
	return j.takePart(n, part)
}

// takeBucketCounts is like takeCounts, for loose counts of a key with this hash.
func (j *jointBound) takeBucketCounts(n int64, hash, asked uint64) int64 {
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
