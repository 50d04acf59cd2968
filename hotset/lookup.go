package hotset

import "math/bits"

// snapshot is an immutable open-addressing hash table from a key's 64-bit hash and
// member to its entry. At most half of its places are taken, so searches are short
// and always end at an empty place.
type snapshot[P any] struct {
	mask   uint64
	places []place[P] // their number is a power of two
}

// place holds an entry and its hash, so that a search reads an entry only if the hashes are equal.
// An empty place has hash 0, which no member has.
type place[P any] struct {
	hash  uint64
	entry *Entry[P]
}

func newSnapshot[P any](entries map[string]*Entry[P]) *snapshot[P] {
	size := 1 << bits.Len(uint(max(4, 2*len(entries))-1))
	t := &snapshot[P]{mask: uint64(size - 1), places: make([]place[P], size)}
	for _, e := range entries {
		i := e.hash & t.mask
		for t.places[i].hash != 0 {
			i = (i + 1) & t.mask
		}
		t.places[i] = place[P]{hash: e.hash, entry: e}
	}
	return t
}

// lookup returns the entry of a member, or nil.
func (t *snapshot[P]) lookup(hash uint64, member []byte) *Entry[P] {
	places := t.places
	for i := hash & t.mask; i < uint64(len(places)); i = (i + 1) & t.mask { // always true; saves the bounds check
		s := &places[i]
		if s.hash == 0 {
			return nil
		}
		if s.hash == hash && s.entry.member == string(member) {
			return s.entry
		}
	}
	return nil
}
