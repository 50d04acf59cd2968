package collector

import (
	"math/bits"
	"sync/atomic"
)

// bitset is a set of slots. Any goroutine may call set while one goroutine calls drain. All other
// methods need a set that no other goroutine uses. The cost of drain and each is proportional to
// the number of set bits.
type bitset struct {
	words    []uint64
	nonEmpty []uint64 // a bit for each word that may have bits
}

func newBitset(size int) bitset {
	words := wordsFor(size)
	return bitset{make([]uint64, words), make([]uint64, wordsFor(words))}
}

func wordsFor(bits int) int { return (bits + 63) / 64 }

func (b *bitset) set(slot uint64) {
	word := slot / 64
	atomic.OrUint64(&b.words[word], 1<<(slot%64))
	if nonEmpty := &b.nonEmpty[word/64]; atomic.LoadUint64(nonEmpty)&(1<<(word%64)) == 0 {
		atomic.OrUint64(nonEmpty, 1<<(word%64))
	}
}

// drain removes each slot from the set and calls f for it. It clears a word's bit in nonEmpty
// before the word, so that a concurrent set sets that bit again.
func (b *bitset) drain(f func(slot int)) {
	for i := range b.nonEmpty {
		if atomic.LoadUint64(&b.nonEmpty[i]) == 0 {
			continue
		}
		for nonEmpty := atomic.SwapUint64(&b.nonEmpty[i], 0); nonEmpty != 0; nonEmpty &= nonEmpty - 1 {
			word := i*64 + bits.TrailingZeros64(nonEmpty)
			for set := atomic.SwapUint64(&b.words[word], 0); set != 0; set &= set - 1 {
				f(word*64 + bits.TrailingZeros64(set))
			}
		}
	}
}

// add is set without atomic operations.
func (b *bitset) add(slot int) {
	word := slot / 64
	b.words[word] |= 1 << (slot % 64)
	b.nonEmpty[word/64] |= 1 << (word % 64)
}

func (b *bitset) remove(slot int) {
	word := slot / 64
	if b.words[word] &^= 1 << (slot % 64); b.words[word] == 0 {
		b.nonEmpty[word/64] &^= 1 << (word % 64)
	}
}

// each calls f for each slot of the set. f may remove that slot.
func (b *bitset) each(f func(slot int)) {
	for i, nonEmpty := range b.nonEmpty {
		for ; nonEmpty != 0; nonEmpty &= nonEmpty - 1 {
			word := i*64 + bits.TrailingZeros64(nonEmpty)
			for set := b.words[word]; set != 0; set &= set - 1 {
				f(word*64 + bits.TrailingZeros64(set))
			}
		}
	}
}

// reset empties the set.
func (b *bitset) reset() {
	clear(b.words)
	clear(b.nonEmpty)
}
