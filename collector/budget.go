package collector

import (
	"math"
	"math/bits"
)

// defaultBudget is the default of Config.Budget.
const defaultBudget = 2000

// budget chooses the counts that a flush sends: the counts of all candidates and, of the other
// keys, counts of h or more, where h is the lowest threshold at which the lines fit. It needs
// neither samples nor sorting, only a histogram of the unsent counts.
type budget struct {
	lines int // lines until the next cut; negative if there is no bound
	spent int // number of lines spent
	limit int // number of lines that may be spent by the end of this flush

	must       int       // lines of hot keys and suspects
	fresh      int       // lines of counts since the last flush
	others     histogram // lines of other keys, by unsent count
	candidates [65]int   // lines of candidates, by the exponent of their load
}

// keySelection selects the keys that a flush sends in addition to hot keys and suspects.
type keySelection struct {
	factor float32 // keys with at least this load are candidates
	bucket int     // other keys are sent if their unsent count is in this bucket or a higher one
	spare  int     // lines left for keys in the bucket below
}

// beginInterval begins an interval with the given number of lines.
func (b *budget) beginInterval(lines int) { b.lines, b.spent = lines, 0 }

// early returns the number of lines that may be spent before the cut. The rest is for the
// flush at the cut.
func (b *budget) early() int { return b.lines / 2 }

// spend reserves lines for an urgent flush, and reports whether there were enough.
func (b *budget) spend(lines int) bool {
	if b.lines >= 0 && b.spent+lines > b.early() {
		return false
	}
	b.spent += lines
	return true
}

func (b *budget) reset() {
	b.must, b.fresh = 0, 0
	b.others.reset()
	clear(b.candidates[:])
}

// add adds the lines of a key with unsent counts.
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
		b.others.add(k.total(), lines)
	}
}

// factor returns the factor that the candidates' mark must be raised by for their lines to fit,
// a power of two. It does not depend on the last flush.
func (b *budget) factor() (factor float32) {
	left, from := b.linesLeft()-b.must, len(b.candidates)
	for ; from > 0; from-- {
		if left -= b.candidates[from-1]; left < 0 && b.candidates[from-1] > 0 {
			break
		}
	}
	return float32(math.Ldexp(1, from))
}

// selectKeys returns the selection of keys to send. Keys that are candidates by load but below
// factor must have been added to others.
func (b *budget) selectKeys(factor float32) keySelection {
	left := b.linesLeft() - b.must
	for exp := exponent(factor); exp < len(b.candidates); exp++ {
		left -= b.candidates[exp]
	}
	sel := keySelection{factor: factor}
	sel.bucket, left = b.others.lowestBucket(max(0, left))
	if b.fresh <= b.linesLeft() {
		sel.spare = left // without a flood, leftover counts are sent, however small
	}
	return sel
}

func (b *budget) linesLeft() int { return max(0, b.limit-b.spent) }

// sends reports whether the counts of a key that is neither hot nor suspect are sent.
func (sel *keySelection) sends(k *note) bool {
	if k.load >= sel.factor {
		return true
	}
	switch bucket := bucketOf(k.total()); {
	case bucket >= sel.bucket:
		return true
	case bucket == sel.bucket-1 && sel.spare >= k.lines():
		sel.spare -= k.lines()
		return true
	}
	return false
}

// exponent returns the greatest e with 2^e <= load. load is at least 1.
func exponent(load float32) int {
	_, e := math.Frexp(float64(load))
	return min(e-1, 64)
}

// histogram counts lines by unsent count: exactly up to 2^exactBits, and above it in steps of
// less than 0.4%.
type histogram struct {
	lines [(64 - exactBits + 2) << (exactBits - 1)]int32
	top   int // the highest bucket in use
}

const exactBits = 9

// bucketOf returns a count's bucket. It is monotonic.
func bucketOf(n uint64) int {
	shift := max(0, bits.Len64(n)-exactBits)
	return shift<<(exactBits-1) + int(n>>shift)
}

func (h *histogram) reset() {
	clear(h.lines[:h.top+1])
	h.top = 0
}

func (h *histogram) add(n uint64, lines int) {
	bucket := bucketOf(n)
	h.lines[bucket] += int32(lines)
	h.top = max(h.top, bucket)
}

// lowestBucket returns the lowest bucket whose lines, together with those of all higher buckets,
// number at most left. over is the number of lines left over.
func (h *histogram) lowestBucket(left int) (bucket, over int) {
	bucket = h.top + 1
	for ; bucket > 0 && int(h.lines[bucket-1]) <= left; bucket-- {
		left -= int(h.lines[bucket-1])
	}
	return bucket, left
}
