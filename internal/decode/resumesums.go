package decode

import (
	"slices"

	"github.com/hotparam/hotparam/internal/snapshot"
)

// save returns what the next process needs of s: the first statement that it hears shows what is
// missing.
func (s *ruleSums) save() snapshot.Sums {
	return snapshot.Sums{Seq: s.seq, Have: slices.Clone(s.have)}
}

// resumeRuleSums continues a sender's sums by rule from those of the process before. What arrived
// there was no more missing here than what arrives late. g is the gap between the two, which is
// not one of a.gaps yet; nil if there is none.
func (s *senders) resumeRuleSums(a *accounts, p *snapshot.Sender, g *openGap, h Handler) {
	if len(p.ByRule.Have) == 0 || s.ruled.size == 0 {
		return // what arrived there counts as missing
	}
	var arrived parts
	for at, n := range p.ByRule.Have[:min(s.ruled.size, len(p.ByRule.Have))] {
		arrived = append(arrived, part{at, n})
	}
	var l *lack
	if a.opening != nil {
		l = a.opening.lack
	}
	if l == nil {
		a.rules.seq = p.ByRule.Seq
		a.rules.add(arrived, s.ruled.size)
		return
	}
	l.from = p.ByRule.Seq
	l.subtract(arrived)
	a.reportLack(l, h)
	if g != nil {
		g.lack, g.ByRule = l, l.joint()
	}
}

// forgetRules forgets what was missing up to the first statement: rules are others now.
func (o *opening) forgetRules() {
	if o != nil {
		o.lack = nil
	}
}
