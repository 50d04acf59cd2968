package hotset

import (
	"math/bits"
	"slices"
)

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

// snapshotSize returns the least number of places for n entries. As long as a table has at most four
// times as many, it is copied instead of rebuilt.
func snapshotSize(n int) int { return 1 << bits.Len(uint(max(4, 2*n)-1)) }

func newSnapshot[P any](entries map[string]*Entry[P]) *snapshot[P] {
	size := snapshotSize(len(entries))
	t := &snapshot[P]{mask: uint64(size - 1), places: make([]place[P], size)}
	for _, e := range entries {
		t.insert(e)
	}
	return t
}

// with returns a table of entries, which differ from the entries of t only by changed. Copying
// the places costs less than inserting every entry again.
func (t *snapshot[P]) with(entries map[string]*Entry[P], changed []*Entry[P]) *snapshot[P] {
	least := snapshotSize(len(entries))
	if size := len(t.places); size < least || size > 4*least || len(changed) > len(entries)/4 {
		return newSnapshot(entries)
	}
	next := &snapshot[P]{mask: t.mask, places: slices.Clone(t.places)}
	for _, e := range changed {
		next.remove(e)
		if now := entries[e.member]; now != nil {
			next.insert(now)
		}
	}
	return next
}

// insert adds an entry whose member is not in the table.
func (t *snapshot[P]) insert(e *Entry[P]) {
	i := e.hash & t.mask
	for t.places[i].hash != 0 {
		i = (i + 1) & t.mask
	}
	t.places[i] = place[P]{hash: e.hash, entry: e}
}

// remove removes the entry of e's member, if there is one, and moves up the entries that it
// displaced (Knuth, TAOCP 3, algorithm 6.4R).
func (t *snapshot[P]) remove(e *Entry[P]) {
	i := e.hash & t.mask
	for t.places[i].hash != e.hash || t.places[i].entry.member != e.member {
		if t.places[i].hash == 0 {
			return
		}
		i = (i + 1) & t.mask
	}
	for j := (i + 1) & t.mask; t.places[j].hash != 0; j = (j + 1) & t.mask {
		home := t.places[j].hash & t.mask
		if (j-home)&t.mask >= (j-i)&t.mask { // a search for place j's entry passes i
			t.places[i], i = t.places[j], j
		}
	}
	t.places[i] = place[P]{}
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
