package hotparam

import "math/bits"

// Combinations are the parameters of a request that are combined to keys by a
// rule with [ByCombinations]: the first [MaxCombined] in canonical order, each
// once however often it is repeated.
type Combinations struct {
	at [MaxCombined]int // in the Params
	n  int
}

// Combine picks the parameters to combine: of those whose source and name are
// among names, or, where names is empty, of all but those that secrets hide. The
// parameters must be sorted.
func (p *Params) Combine(names []Param, secrets *Secrets) (c Combinations) {
	for i := range p.list {
		q := &p.list[i]
		switch {
		case i > 0 && p.At(i) == p.At(i-1):
		case len(names) > 0 && !q.among(names), len(names) == 0 && secrets.Hides(q.name()):
		default:
			c.at[c.n] = i
			if c.n++; c.n == MaxCombined {
				return c
			}
		}
	}
	return c
}

// Next is the number of the combination after this one: a set of one to
// [MaxCombination] of the parameters, none of which comes twice. It begins with
// Next(0); after the last comes 0.
func (c *Combinations) Next(set uint) uint {
	for set++; bits.OnesCount(set) > MaxCombination; set++ {
	}
	if set >= 1<<c.n {
		return 0
	}
	return set
}

// AppendCombination appends "name=value&…" of the parameters of one combination,
// in canonical order.
func (p *Params) AppendCombination(dst []byte, c *Combinations, set uint) []byte {
	for n := 0; set != 0; set &= set - 1 {
		dst = appendNext(dst, &p.list[c.at[bits.TrailingZeros(set)]], n)
		n++
	}
	return dst
}
