package keytext

import (
	"math/bits"

	"github.com/hotparam/hotparam/rules"
)

// maxCombinationKeys is the most keys that a request makes. Seven parameters have as many
// combinations of one and two.
const maxCombinationKeys = 28

// Combinations holds the parameters of a request that a rule with [rules.ByEach] or [rules.ByCombinations]
// combines into keys, and the most parameters in one key. A parameter that is repeated with the
// same value is combined once. All keys of one parameter come first, then all of two, then all of
// three.
//
// With ByEach a key has one parameter, and at most [rules.MaxKeys] are taken. With ByCombinations, a size
// is left out if its keys would not all fit in [maxCombinationKeys]. Up to five parameters make
// every combination of three, up to seven every pair, and more only keys of one parameter each. If
// there are more than maxCombinationKeys names, the first in canonical order are taken. If a name
// is repeated, its further values are taken only while the total stays within MaxKeys. So the keys
// depend on nothing but the request, and no parameter is left out for its name.
type Combinations struct {
	Hidden int  // number of parameters left out because they look secret
	More   bool // whether some parameters were left out because there were too many

	indices [maxCombinationKeys]int32 // indices in the Params
	n       int
	maxSize int  // most parameters in one key
	addr    uint // bits of the parameters that are levels of the address
}

// Len returns the number of parameters that are combined.
func (c *Combinations) Len() int { return c.n }

// Combine picks the parameters to combine: those that selection names, or all that are not
// hidden. The parameters must be sorted.
func (p *Params) Combine(selection *rules.By, secrets *rules.Secrets) (c Combinations) {
	if selection.Kind == rules.ByEach {
		c.n, c.Hidden, c.More = p.pick(c.indices[:rules.MaxKeys], selection.Names, secrets)
		c.maxSize = min(c.n, 1)
		return c
	}
	c.n, c.Hidden, c.More = p.pick(c.indices[:], selection.Names, secrets)
	c.maxSize = largestSize(c.n)
	if len(selection.Names) == 0 { // only a rule that names levels has keys with them
		return c
	}
	for i := range c.n {
		if p.list[c.indices[i]].source == rules.Addr {
			c.addr |= 1 << i
		}
	}
	return c
}

// largestSize returns the most parameters in one key when n parameters are combined.
func largestSize(n int) (size int) {
	for sets, keys := 1, 0; size < min(n, rules.MaxCombination); size++ {
		sets = sets * (n - size) / (size + 1) // of size+1 out of n
		if keys += sets; keys > maxCombinationKeys {
			break
		}
	}
	return size
}

// Next returns the combination after set, as a set of the parameters' numbers. Combinations of
// one parameter come first, then those of two, then those of three. None comes twice, and none
// has two levels of the address. The first call is Next(0); after the last combination Next
// returns 0.
func (c *Combinations) Next(set uint) uint {
	set = c.next(set)
	for levels := set & c.addr; levels&(levels-1) != 0; levels = set & c.addr {
		set = c.next(set)
	}
	return set
}

// next is like Next, but does not skip combinations with two levels of the address.
func (c *Combinations) next(set uint) uint {
	size := bits.OnesCount(set)
	if set != 0 {
		// The next higher set of the same size (HAKMEM 175).
		low := set & -set
		high := set + low
		set = high | (set^high)>>2>>bits.TrailingZeros(low)
	}
	if set == 0 || set >= 1<<c.n {
		if size++; size > c.maxSize {
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
		dst = p.appendNext(dst, int(c.indices[bits.TrailingZeros(set)]), n)
		n++
	}
	return dst
}
