package collector

import (
	"math/bits"
	"sync/atomic"
)

// table is an open-addressing hash table of counters. Adders fill it without a
// lock: a slot is claimed by its hash, then given its key, then made ready. It
// only ever grows; to shed keys it is replaced as a whole (see shard).
type table struct {
	slots []slot
	dirty []atomic.Uint64 // a bit for each slot whose counter left zero
	any   atomic.Bool     // some bit of dirty is set
	arena []byte          // the keys' bytes
	used  atomic.Int64    // slots claimed
	bytes atomic.Int64    // bytes of the arena given out
	limit int64           // slots that may be claimed
}

type slot struct {
	hash  atomic.Uint64 // 0: free
	state atomic.Uint64 // closed | ready | count
	off   uint32        // key in the arena; written before ready is set
	len   uint32
}

// Bits of a slot's state.
const (
	closed    = 1 << 63 // the table was replaced: start over with the new one
	ready     = 1 << 62 // the key is written
	countMask = ready - 1
)

// maxProbe bounds how far a key can lie from its hash's place. At half load a
// run this long does not happen unless keys are being added as fast as they
// can be hashed.
const maxProbe = 64

type outcome int

const (
	added outcome = iota
	full
	replaced // the table is closed
)

// newTable makes room for keys keys, of 128 bytes on average.
func newTable(keys int) *table {
	size := 1
	for size < 2*keys {
		size *= 2
	}
	return &table{
		slots: make([]slot, size),
		dirty: make([]atomic.Uint64, (size+63)/64),
		arena: make([]byte, keys*128),
		limit: int64(keys),
	}
}

// add adds n to a key's counter. Two adders that bring the same new key at the
// same time may both claim a slot: the key's count is then split in two, which
// adds up at the receiver, until the table is replaced.
func (t *table) add(hash uint64, key []byte, n uint64) outcome {
	mask := uint64(len(t.slots) - 1)
	for i := range uint64(maxProbe) {
		at := (hash + i) & mask
		s := &t.slots[at]
		h := s.hash.Load()
		if h == 0 {
			if t.used.Load() >= t.limit {
				return full
			}
			if s.hash.CompareAndSwap(0, hash) {
				return t.fill(at, key, n)
			}
			h = s.hash.Load()
		}
		if h != hash {
			continue
		}
		state := s.state.Load()
		if state&closed != 0 {
			return replaced
		}
		if state&ready == 0 || string(t.key(s)) != string(key) {
			continue
		}
		return t.count(at, s.state.Add(n), n)
	}
	return full
}

// count looks at what a slot's state became when n was added to it.
func (t *table) count(at, state, n uint64) outcome {
	if state&closed != 0 {
		return replaced
	}
	if state&countMask == n { // it was zero: the flush has to come here
		t.dirty[at/64].Or(1 << (at % 64))
		if !t.any.Load() {
			t.any.Store(true)
		}
	}
	return added
}

// fill gives a claimed slot its key and first count.
func (t *table) fill(at uint64, key []byte, n uint64) outcome {
	s := &t.slots[at]
	t.used.Add(1)
	end := t.bytes.Add(int64(len(key)))
	if end > int64(len(t.arena)) {
		return full // the slot stays claimed and empty until the table is replaced
	}
	s.off, s.len = uint32(end-int64(len(key))), uint32(len(key))
	copy(t.arena[s.off:end], key)
	return t.count(at, s.state.Add(ready|n), n)
}

// key is the key of a slot that is ready.
func (t *table) key(s *slot) []byte { return t.arena[s.off : s.off+s.len : s.off+s.len] }

// take hands each counter that left zero since the last call to f and zeroes
// it. The bit goes first: an adder that comes in between sets it anew.
func (t *table) take(f func(at int, n uint64)) {
	if !t.any.Swap(false) {
		return
	}
	for word := range t.dirty {
		if t.dirty[word].Load() == 0 {
			continue
		}
		for set := t.dirty[word].Swap(0); set != 0; set &= set - 1 {
			at := word*64 + bits.TrailingZeros64(set)
			if n := t.slots[at].state.And(ready|closed) & countMask; n > 0 {
				f(at, n)
			}
		}
	}
}

// close shuts a slot for good and returns what its counter still held.
func (s *slot) close() (n uint64, ok bool) {
	state := s.state.Or(closed)
	return state & countMask, state&ready != 0
}
