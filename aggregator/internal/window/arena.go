package window

import "math/bits"

// unitSize is the memory of a unit, with its share of the index, and a byte that more than covers
// its bit.
const unitSize = 32 + indexShare + 1

// arena hands out units by number, up to a bound, and takes them back. Number 0 is no unit.
type arena struct {
	chunks  [][]unit
	entries []uint64 // bit i: unit i is an entry
	made    int      // number of units that were ever handed out
	limit   int
	free    uint32 // first unit of the list of returned ones
	used    int
}

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits

	freeNext = 1 // word of a free unit that has the number of the next
)

func newArena(limit int) arena {
	return arena{limit: limit, entries: make([]uint64, limit/64+1)}
}

func (a *arena) unit(i uint32) *unit { return &a.chunks[i>>chunkBits][i&(chunkSize-1)] }

// takeUnit returns the number of a free unit, or 0.
func (a *arena) takeUnit() uint32 {
	if i := a.free; i != 0 {
		a.free = a.unit(i)[freeNext]
		a.used++
		return i
	}
	if a.made >= a.limit {
		return 0
	}
	a.made++
	a.used++
	i := uint32(a.made)
	if int(i>>chunkBits) >= len(a.chunks) {
		from := len(a.chunks) << chunkBits
		a.chunks = append(a.chunks, make([]unit, min(chunkSize, a.limit+1-from)))
	}
	return i
}

// freeUnit frees a unit.
func (a *arena) freeUnit(i uint32) {
	a.unit(i)[freeNext] = a.free
	a.free = i
	a.used--
}

func (a *arena) setEntry(i uint32, entry bool) {
	if entry {
		a.entries[i/64] |= 1 << (i % 64)
	} else {
		a.entries[i/64] &^= 1 << (i % 64)
	}
}

func (a *arena) isEntry(i uint32) bool { return a.entries[i/64]&(1<<(i%64)) != 0 }

// next returns the first entry from number i on, or 0.
func (a *arena) next(i uint32) uint32 {
	word := int(i / 64)
	if word >= len(a.entries) {
		return 0
	}
	marks := a.entries[word] >> (i % 64) << (i % 64)
	for end := a.made / 64; ; marks = a.entries[word] {
		if marks != 0 {
			return uint32(word*64 + bits.TrailingZeros64(marks))
		}
		if word++; word > end {
			return 0
		}
	}
}
