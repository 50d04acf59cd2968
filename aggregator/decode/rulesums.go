package decode

import (
	"slices"

	"github.com/hotparam/hotparam/wire"
)

// ruled are the rules whose sums senders report, in order.
type ruled struct {
	mark    uint32
	numbers []int // of the rules
	place   []int // by rule number, -1: none
	sums    []uint64
}

func newRuled(n *Numbered) ruled {
	r := ruled{mark: wire.RulesMark(n.inOrder), place: make([]int, len(n.byNumber.Rules))}
	for i := range r.place {
		r.place[i] = -1
	}
	if r.mark != 0 {
		r.numbers = n.numbers
	}
	for place, number := range r.numbers {
		r.place[number] = place
	}
	r.sums = make([]uint64, 2*len(r.numbers))
	return r
}

// ruleSums split by rule the counts that a sender has sent and those that have arrived. Their
// difference between two packets with rule sums is how much of each rule is missing. There
// are two values for each place in [ruled]: loose counts, and counts on accounts.
type ruleSums struct {
	first, last uint64   // sequences of packets with rule sums, or 0
	base        []uint64 // what had been sent before the first
	got         []uint64 // what has arrived since
	missing     []uint64 // what had not, before the last
}

// take records the rule sums of the newest packet. It returns how much is missing of each
// rule since the packet that had them before, or nil if that is unknown.
func (s *ruleSums) take(seq uint64, told []uint64) (between []uint64, since uint64) {
	if s.first == 0 {
		n := len(told)
		*s = ruleSums{first: seq, last: seq, base: slices.Clone(told), got: make([]uint64, n), missing: make([]uint64, n)}
		return nil, 0
	}
	between, since = make([]uint64, len(told)), s.last
	for i := range told {
		sent := told[i] - s.base[i]
		if sent < s.got[i]+s.missing[i] || told[i] < s.base[i] {
			*s = ruleSums{} // it contradicts itself: it begins anew with the next
			return nil, 0
		}
		between[i] = sent - s.got[i] - s.missing[i]
		s.missing[i] += between[i]
	}
	s.last = seq
	return between, since
}

// note adds the counts of a packet.
func (s *ruleSums) note(seq uint64, counts []uint64) {
	if s.first == 0 || seq < s.first {
		return
	}
	for i, n := range counts {
		s.got[i] += n
		if seq < s.last { // it was missing
			s.missing[i] -= min(n, s.missing[i])
		}
	}
}

// byRule returns what is missing of each rule, by its number.
func (r *ruled) byRule(between []uint64) []RuleGap {
	of := make([]RuleGap, len(r.place))
	for place, number := range r.numbers {
		of[number] = RuleGap{toCount(between[2*place]), toCount(between[2*place+1])}
	}
	return of
}

// toCount is a sum as a count, so bounded that no claim wraps around to nothing.
func toCount(n uint64) int64 { return int64(min(n, wire.MaxCount)) }
