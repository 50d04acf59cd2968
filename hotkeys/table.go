package hotkeys

import "math/bits"

// table is an immutable open-addressing hash table from a key's 64-bit hash and
// member to its entry. At most half of its slots are taken, so a search ends
// soon, and there is always an empty slot to end at.
type table[P any] struct {
	mask  uint64
	slots []slot[P] // a power of two
}

// slot holds one entry beside its hash, so that a search reads an entry only
// when the hash is equal. Hashes are never 0: that is an empty slot.
type slot[P any] struct {
	hash  uint64
	entry *Entry[P]
}

// newTable holds the entries; hash gives an entry's hash.
func newTable[P any](entries map[string]*Entry[P], hash func(member []byte) uint64) *table[P] {
	size := 1 << bits.Len(uint(max(4, 2*len(entries))-1))
	t := &table[P]{mask: uint64(size - 1), slots: make([]slot[P], size)}
	for member, e := range entries {
		h := hash([]byte(member))
		i := h & t.mask
		for t.slots[i].hash != 0 {
			i = (i + 1) & t.mask
		}
		t.slots[i] = slot[P]{hash: h, entry: e}
	}
	return t
}

func (t *table[P]) lookup(hash uint64, member []byte) *Entry[P] {
	slots := t.slots
	for i := hash & t.mask; i < uint64(len(slots)); i = (i + 1) & t.mask { // always true: it spares the bounds check
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
