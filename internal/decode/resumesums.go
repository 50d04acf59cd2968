package decode

import (
	"slices"

	"github.com/hotparam/hotparam/internal/snapshot"
)

// save returns the part of s that the next process needs: the first statement that it receives
// shows the loss.
func (s *ruleSums) save() snapshot.Sums {
	return snapshot.Sums{Seq: s.seq, Have: slices.Clone(s.have)}
}

// resumeRuleSums continues a sender's sums by rule from those of the previous process. Counts
// that arrived there are not missing here; they are treated like late arrivals. gap is the one
// between the two processes, which is not in a.gaps yet, or nil if there is none.
func (s *senders) resumeRuleSums(a *accounts, saved *snapshot.Sender, gap *openGap, h Handler) {
	if len(saved.ByRule.Have) == 0 || s.ruled.size == 0 {
		return // counts that arrived there count as missing
	}
	var arrived placeCounts
	for place, n := range saved.ByRule.Have[:min(s.ruled.size, len(saved.ByRule.Have))] {
		arrived = append(arrived, placeCount{place, n})
	}
	var l *lack
	if a.opening != nil {
		l = a.opening.lack
	}
	if l == nil {
		a.rules.seq = saved.ByRule.Seq
		a.rules.add(arrived, s.ruled.size)
		return
	}
	l.from = saved.ByRule.Seq
	l.subtract(arrived)
	a.reportLack(l, h)
	if gap != nil {
		gap.lack, gap.ByRule = l, l.joint()
	}
}

// forgetRules forgets the loss up to the first statement, because the rules changed.
func (o *opening) forgetRules() {
	if o != nil {
		o.lack = nil
	}
}
