package rules

import "math/bits"

// Combinations are the parameters of a request that are combined to keys by a
// rule with [ByCombinations], each once however often it is repeated, and how
// many of them one key has at most. All keys of one parameter come first, then
// all of two, then all of three, of which the last are made only if all of them
// fit in [maxCombinationKeys]: with up to five parameters every combination of
// three, with up to seven every pair, and beyond that each parameter alone. Of
// more than maxCombinationKeys names the first in canonical order are taken, and
// second values of names as far as there are no more than [MaxKeys] parameters.
// So what a key counts depends on nothing but the request, and no
// parameter is left out for its name.
type Combinations struct {
	Hidden int  // as of [Singles]
	More   bool // some parameters were left out

	at   [maxCombinationKeys]int32 // in the Params
	n    int
	most int  // parameters of one key
	addr uint // which of them are levels of the address
}

// Len returns how many parameters are combined.
func (c *Combinations) Len() int { return c.n }

// Combine picks the parameters to combine: of those whose source and name are
// among names, or, where names is empty, of all but those that secrets hide. The
// parameters must be sorted.
func (p *Params) Combine(names []Param, secrets *Secrets) (c Combinations) {
	c.n, c.Hidden, c.More = p.pick(c.at[:], names, secrets)
	c.most = combined(c.n)
	if len(names) == 0 { // only a rule that names levels has keys of them
		return c
	}
	for i := range c.n {
		if p.list[c.at[i]].source == Addr {
			c.addr |= 1 << i
		}
	}
	return c
}

// combined returns how many of n parameters one key has at most.
func combined(n int) (most int) {
	for sets, keys := 1, 0; most < min(n, maxCombination); most++ {
		sets = sets * (n - most) / (most + 1) // of most+1 out of n
		if keys += sets; keys > maxCombinationKeys {
			break
		}
	}
	return most
}

// Next returns the combination after set, as a set of the parameters' numbers.
// Those of one parameter come first, then those of two, then those of three;
// none comes twice, and none has two levels of the address. It begins with Next(0); after
// the last comes 0.
func (c *Combinations) Next(set uint) uint {
	set = c.next(set)
	for levels := set & c.addr; levels&(levels-1) != 0; levels = set & c.addr {
		set = c.next(set)
	}
	return set
}

// next is Next with any levels.
func (c *Combinations) next(set uint) uint {
	size := bits.OnesCount(set)
	if set != 0 {
		// The next higher set of the same size (HAKMEM 175).
		low := set & -set
		high := set + low
		set = high | (set^high)/low>>2
	}
	if set == 0 || set >= 1<<c.n {
		if size++; size > c.most {
			return 0
		}
		set = 1<<size - 1
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
