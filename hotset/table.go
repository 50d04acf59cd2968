package hotset

import (
	"math/bits"
	"slices"
)

// table is an immutable open-addressing hash table from a key's 64-bit hash and
// member to its entry. At most half of its slots are taken, so searches are short
// and always end at an empty slot.
type table[P any] struct {
	mask  uint64
	slots []slot[P] // their number is a power of two
}

// slot holds an entry and its hash, so that a search reads an entry only if the hashes are equal.
// An empty slot has hash 0, which no member has.
type slot[P any] struct {
	hash  uint64
	entry *Entry[P]
}

// tableSize returns the least number of slots for n entries. As long as a table has at most four
// times as many, it is copied instead of rebuilt.
func tableSize(n int) int { return 1 << bits.Len(uint(max(4, 2*n)-1)) }

func newTable[P any](entries map[string]*Entry[P]) *table[P] {
	size := tableSize(len(entries))
	t := &table[P]{mask: uint64(size - 1), slots: make([]slot[P], size)}
	for _, e := range entries {
		t.insert(e)
	}
	return t
}

// with returns a table of entries, which differ from the entries of t only by changed. Copying
// the slots costs less than inserting every entry again.
func (t *table[P]) with(entries map[string]*Entry[P], changed []*Entry[P]) *table[P] {
	least := tableSize(len(entries))
	if size := len(t.slots); size < least || size > 4*least || len(changed) > len(entries)/4 {
		return newTable(entries)
	}
	next := &table[P]{mask: t.mask, slots: slices.Clone(t.slots)}
	for _, e := range changed {
		next.remove(e)
		if now := entries[e.member]; now != nil {
			next.insert(now)
		}
	}
	return next
}

// insert adds an entry whose member is not in the table.
func (t *table[P]) insert(e *Entry[P]) {
	i := e.hash & t.mask
	for t.slots[i].hash != 0 {
		i = (i + 1) & t.mask
	}
	t.slots[i] = slot[P]{hash: e.hash, entry: e}
}

// remove removes the entry of e's member, if there is one, and moves up the entries that it
// displaced (Knuth, TAOCP 3, algorithm 6.4R).
func (t *table[P]) remove(e *Entry[P]) {
	i := e.hash & t.mask
	for t.slots[i].hash != e.hash || t.slots[i].entry.member != e.member {
		if t.slots[i].hash == 0 {
			return
		}
		i = (i + 1) & t.mask
	}
	for j := (i + 1) & t.mask; t.slots[j].hash != 0; j = (j + 1) & t.mask {
		home := t.slots[j].hash & t.mask
		if (j-home)&t.mask >= (j-i)&t.mask { // a search for slot j's entry passes i
			t.slots[i], i = t.slots[j], j
		}
	}
	t.slots[i] = slot[P]{}
}

// lookup returns the entry of a member, or nil.
func (t *table[P]) lookup(hash uint64, member []byte) *Entry[P] {
	slots := t.slots
	for i := hash & t.mask; i < uint64(len(slots)); i = (i + 1) & t.mask { // always true; saves the bounds check
		s := &slots[i]
		if s.hash == 0 {
			return nil
		}
		if s.hash == hash && s.entry.member == string(member) {
			return s.entry
		}
	}
	return nil
}
