package collector

import (
	"math/bits"
	"sync/atomic"
)

// bitset is a set of slots. Any goroutine may set bits, and one goroutine may drain it, at a
// cost proportional to the number of set bits.
type bitset struct {
	words []atomic.Uint64
	full  []atomic.Uint64 // a bit for each word that may have bits
}

func newBitset(size int) bitset {
	words := wordsFor(size)
	return bitset{make([]atomic.Uint64, words), make([]atomic.Uint64, wordsFor(words))}
}

func wordsFor(bits int) int { return (bits + 63) / 64 }

func (b *bitset) set(slot uint64) {
	word := slot / 64
	b.words[word].Or(1 << (slot % 64))
	if full := &b.full[word/64]; full.Load()&(1<<(word%64)) == 0 {
		full.Or(1 << (word % 64))
	}
}

// drain removes each slot from the set and calls f for it. It clears a word's bit in full
// before the word, so that a concurrent set sets that bit again.
func (b *bitset) drain(f func(slot int)) {
	for i := range b.full {
		if b.full[i].Load() == 0 {
			continue
		}
		for full := b.full[i].Swap(0); full != 0; full &= full - 1 {
			word := i*64 + bits.TrailingZeros64(full)
			for set := b.words[word].Swap(0); set != 0; set &= set - 1 {
				f(word*64 + bits.TrailingZeros64(set))
			}
		}
	}
}

// reset empties a set that no other goroutine uses.
func (b *bitset) reset() {
	clear(b.words)
	clear(b.full)
}

// slotSet is a bitset for use by one goroutine.
type slotSet struct{ words, full []uint64 }

func newSlotSet(size int) slotSet {
	words := wordsFor(size)
	return slotSet{make([]uint64, words), make([]uint64, wordsFor(words))}
}

func (b *slotSet) set(slot int) {
	word := slot / 64
	b.words[word] |= 1 << (slot % 64)
	b.full[word/64] |= 1 << (word % 64)
}

func (b *slotSet) unset(slot int) {
	word := slot / 64
	if b.words[word] &^= 1 << (slot % 64); b.words[word] == 0 {
		b.full[word/64] &^= 1 << (word % 64)
	}
}

// each calls f for each slot of the set. f may remove that slot.
func (b *slotSet) each(f func(slot int)) {
	for i, full := range b.full {
		for ; full != 0; full &= full - 1 {
			word := i*64 + bits.TrailingZeros64(full)
			for set := b.words[word]; set != 0; set &= set - 1 {
				f(word*64 + bits.TrailingZeros64(set))
			}
		}
	}
}

func (b *slotSet) reset() {
	clear(b.words)
	clear(b.full)
}
