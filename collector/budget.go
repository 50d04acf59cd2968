package collector

import (
	"math"
	"math/bits"
)

// DefaultBudget is how many lines a flush sends at most by default.
const DefaultBudget = 2000

// budget chooses what a flush sends: all candidates, and of the other keys those
// with at least h counts unsent, h being the least that lets the lines fit. No
// sampling, no sorting: a histogram of the unsent counts is enough.
type budget struct {
	lines int // until the next cut; negative: no bound
	spent int // of them
	limit int // what may be spent with the present flush

	must       int       // lines of keys that are hot or suspect
	fresh      int       // lines of counts that came since the last flush
	rest       histogram // lines of keys that are no candidates, by their unsent count
	candidates [65]int   // lines of candidates by the exponent of their load
}

// verdict is what a flush sends besides hot keys and suspects.
type verdict struct {
	factor float32 // keys with a load of at least this are candidates
	bucket int     // of the unsent count from which on others are sent
	spare  int     // lines left for those of the bucket below
}

// begin begins a time that has so many lines.
func (b *budget) begin(lines int) { b.lines, b.spent = lines, 0 }

// early is how many lines may be spent before the cut, so that the flush there
// always finds some.
func (b *budget) early() int { return b.lines / 2 }

// spend takes lines for an urgent flush.
func (b *budget) spend(lines int) bool {
	if b.lines >= 0 && b.spent+lines > b.early() {
		return false
	}
	b.spent += lines
	return true
}

func (b *budget) reset() {
	b.must, b.fresh = 0, 0
	b.rest.reset()
	clear(b.candidates[:])
}

// add adds a key with unsent counts, which could be sent.
func (b *budget) add(k *note) {
	lines := k.lines()
	if k.delta > 0 {
		b.fresh++
	}
	switch {
	case k.flags != 0:
		b.must += lines
	case k.load >= 1:
		b.candidates[exponent(k.load)] += lines
	default:
		b.rest.add(k.total(), lines)
	}
}

// factor raises the candidates' mark, by doubling it, until their lines fit. The
// mark of a flush does not depend on that of the one before.
func (b *budget) factor() (factor float32) {
	left, from := b.left()-b.must, len(b.candidates)
	for ; from > 0; from-- {
		if left -= b.candidates[from-1]; left < 0 && b.candidates[from-1] > 0 {
			break
		}
	}
	return float32(math.Ldexp(1, from))
}

// judge decides, after add was called for all keys; those whose candidates'
// mark is above their load have been added to the rest.
func (b *budget) judge(factor float32) verdict {
	left := b.left() - b.must
	for at := exponent(factor); at < len(b.candidates); at++ {
		left -= b.candidates[at]
	}
	v := verdict{factor: factor}
	v.bucket, left = b.rest.least(max(0, left))
	if b.fresh <= b.left() {
		v.spare = left // no flood: what it left behind goes, however little of a key
	}
	return v
}

func (b *budget) left() int { return max(0, b.limit-b.spent) }

// sends tells whether a key that is neither hot nor suspect is sent.
func (v *verdict) sends(k *note) bool {
	if k.load >= v.factor {
		return true
	}
	switch at := bucketOf(k.total()); {
	case at >= v.bucket:
		return true
	case at == v.bucket-1 && v.spare >= k.lines():
		v.spare -= k.lines()
		return true
	}
	return false
}

// exponent is the greatest e for which 2^e is not above a load of at least 1.
func exponent(load float32) int {
	_, e := math.Frexp(float64(load))
	return min(e-1, 64)
}

// histogram counts lines by a key's unsent count: exactly up to 2^exactBits, in
// steps of less than 0.4% beyond.
type histogram struct {
	lines [(64 - exactBits + 2) << (exactBits - 1)]int32
	top   int // the highest bucket in use
}

const exactBits = 9

// bucketOf is a count's bucket. It rises with the count.
func bucketOf(n uint64) int {
	shift := max(0, bits.Len64(n)-exactBits)
	return shift<<(exactBits-1) + int(n>>shift)
}

func (h *histogram) reset() {
	clear(h.lines[:h.top+1])
	h.top = 0
}

func (h *histogram) add(n uint64, lines int) {
	at := bucketOf(n)
	h.lines[at] += int32(lines)
	h.top = max(h.top, at)
}

// least is the lowest bucket for which the lines from it on are at most left,
// and how many are then left over.
func (h *histogram) least(left int) (bucket, over int) {
	at := h.top + 1
	for ; at > 0 && int(h.lines[at-1]) <= left; at-- {
		left -= int(h.lines[at-1])
	}
	return at, left
}
