package decode

import (
	"slices"

	"github.com/hotparam/hotparam/internal/wire"
)

// ruled are the rules whose sums senders state, in order.
type ruled struct {
	mark    uint32
	numbers []int    // numbers of the rules
	stated  []uint64 // the sums in the order stated
	sums    []uint64 // the sums by number: two values each, as in [Gap]
	size    int      // length of sums; 0 if senders state none
}

func newRuled(n *Numbered) ruled {
	r := ruled{mark: wire.RulesMark(n.inOrder)}
	if r.mark != 0 {
		r.numbers, r.size = n.numbers, 2*len(n.byNumber.Rules)
	}
	r.stated, r.sums = make([]uint64, 2*len(r.numbers)), make([]uint64, r.size)
	return r
}

// parse reads the rule sums of a packet into r.sums. It returns false if they belong to other
// rules.
func (r *ruled) parse(text []byte) bool {
	if r.mark == 0 || !wire.ParseRuleSums(r.stated, text, r.mark) {
		return false
	}
	for place, number := range r.numbers {
		r.sums[2*number], r.sums[2*number+1] = r.stated[2*place], r.stated[2*place+1]
	}
	return true
}

// ruleSums compare the sums by rule that a sender states with the counts that have arrived. The
// increase between two statements, less the counts that arrived, is missing between them. A gap
// lies between two statements. A statement that was overtaken is ignored, since its packet does
// not show which of the arrived counts were sent before it. (Sums by bucket need no order, at
// the price of a number in each packet.)
//
// The zero value is the beginning of a sender's life. Counts from then that never arrived count
// as missing, so a bound may be too high, but never too low.
type ruleSums struct {
	seq  uint64   // sequence of the newest statement
	have []uint64 // sums of the next statement if no packet is missing; nil means zeros
}

// lack is the loss between two statements, in all gaps there together.
type lack struct {
	from, to    uint64 // sequences
	incarnation uint64
	missing     []uint64 // loss by place, modulo 2^64 if the sender contradicts itself
}

// placeCounts are the counts of a packet by place in the sums. A place may occur repeatedly.
type placeCounts []placeCount

type placeCount struct {
	place int
	n     uint64
}

// add adds n counts.
func (p *placeCounts) add(place int, n uint64) {
	if last := len(*p) - 1; last >= 0 && (*p)[last].place == place {
		(*p)[last].n += n
		return
	}
	*p = append(*p, placeCount{place, n})
}

// add adds counts of packets after the newest statement. size is the number of sums.
func (s *ruleSums) add(counts placeCounts, size int) {
	if s.have == nil {
		s.have = make([]uint64, size)
	}
	for _, p := range counts {
		s.have[p.place] += p.n
	}
}

// subtract removes counts that are not missing.
func (l *lack) subtract(counts placeCounts) {
	for _, p := range counts {
		if p.place < len(l.missing) { // otherwise the rule is newer
			l.missing[p.place] -= p.n
		}
	}
}

// joint returns the bound for handlers, which keep it, or nil if the sender contradicts itself.
func (l *lack) joint() *Joint {
	if slices.Max(l.missing) > wire.MaxCount {
		return nil
	}
	return newJoint(l.incarnation, l.missing)
}

// divideByRule divides the gaps before the newest packet of a sender by the sums that it
// states. It returns the index of the first gap that is divided.
func (s *senders) divideByRule(a *accounts, m *wire.Meta) (first int) {
	first = len(a.gaps)
	if len(m.Rules) == 0 || m.Seq <= a.rules.seq || !s.ruled.parse(m.Rules) {
		return first
	}
	for first > 0 && a.gaps[first-1].from >= a.rules.seq && a.gaps[first-1].lack == nil {
		first--
	}
	opens := a.rules.seq == 0 && a.opening != nil
	if first < len(a.gaps) || opens {
		l := &lack{a.rules.seq, m.Seq, a.life, slices.Clone(s.ruled.sums)}
		for i, n := range a.rules.have {
			l.missing[i] -= n
		}
		if opens {
			a.opening.lack = l
		}
		joint := l.joint()
		for i := first; i < len(a.gaps); i++ {
			a.gaps[i].lack, a.gaps[i].ByRule = l, joint
		}
	}
	a.rules.seq, a.rules.have = m.Seq, append(a.rules.have[:0], s.ruled.sums...)
	return first
}

// addByRule records the arrival of a packet's counts. If the packet had been counted as missing
// between two statements, the gaps there become smaller.
func (a *accounts) addByRule(seq uint64, counts placeCounts, size int, h Handler) {
	if len(counts) == 0 {
		return
	}
	if seq >= a.rules.seq {
		a.rules.add(counts, size)
	} else if l := a.lackAround(seq); l != nil {
		l.subtract(counts)
		a.reportLack(l, h)
	}
}

// lackAround returns the loss between the statements around a packet, or nil if it is unknown.
func (a *accounts) lackAround(seq uint64) *lack {
	for i := range a.gaps {
		if l := a.gaps[i].lack; l != nil && l.from <= seq && seq < l.to {
			return l
		}
	}
	if o := a.opening; o != nil && o.lack != nil && seq < o.lack.to {
		return o.lack
	}
	return nil
}

// reportLack reports to h the gaps that share l, after l became smaller.
func (a *accounts) reportLack(l *lack, h Handler) {
	joint := l.joint()
	for i := range a.gaps {
		if g := &a.gaps[i]; g.lack == l {
			g.ByRule = joint
			h.RecordGap(g.Gap)
		}
	}
}
