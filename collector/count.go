package collector

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// keyTable counts keys. Goroutines add to it without a lock. It never shrinks; to drop keys,
// the whole table is replaced (see compact.go).
//
// Keys get slots in the order of their first occurrence. Frequent keys occur early, so their
// slots are close together. An open-addressing index finds the slots. A new key gets a
// complete slot first, and then enters the index by one compare-and-swap. A concurrent add of
// the same key finds that entry where its own would have gone.
type keyTable struct {
	index  []atomic.Uint32 // hash tag | slot number from 1; 0 if free
	number uint32          // mask of the slot number in an entry of index
	slots  []keySlot
	dirty  bitset // slots whose counter has left zero
	urgent bitset // slots whose counter has reached its urgent count
	arena  []byte // the bytes of long keys
	alarm  int64  // number of used slots at which room has to be made
	// counted is set if adds are counted in inside, so that the table can be reused; see pool.
	counted bool

	_      [64]byte     // separates the fields above, which are read by all and never changed
	used   atomic.Int64 // slots in use
	bytes  atomic.Int64 // bytes of the arena in use
	inside atomic.Int64 // adds in progress in a counted table
}

// keySlot is a cache line. For a short key, an add touches only the slot and an entry of the
// index.
type keySlot struct {
	state       atomic.Uint64 // closed | count
	urgentCount atomic.Uint64 // the count that is urgent; written only by the flushing goroutine
	hash        uint64        // this and the following fields do not change once the slot is in the index
	len         uint32        // length of the key
	off         uint32        // offset in the arena of a key longer than short
	short       [32]byte
}

// Bits of a slot's state.
const (
	closed    = 1 << 63 // the table was replaced: add to the new one
	countMask = closed - 1
)

// never is an urgent count that no count reaches.
const never = math.MaxUint64

// maxProbe bounds the length of a probe. At the highest load, runs of that length occur
// only if keys are added as fast as they can be hashed.
const maxProbe = 128

// addOutcome is the result of an add, as a set of bits.
type addOutcome uint8

const (
	added    addOutcome = 0
	urgent   addOutcome = 1 << iota // the count reached the slot's urgent count
	filling                         // the table is about to be full
	full                            // the key was not counted
	replaced                        // the key was not counted: the table is closed
)

// arenaPerKey is the average key length up to which a table has room for its number of keys.
// Short keys need no arena and count as 0.
const arenaPerKey = 128

// newTable returns a table for the given number of keys, all with this urgent count.
func newTable(keys int, urgentCount uint64) *keyTable {
	size := 1
	for size*5 < keys*8 {
		size *= 2
	}
	t := &keyTable{
		index:  make([]atomic.Uint32, size),
		number: 1<<bits.Len(uint(keys)) - 1,
		slots:  make([]keySlot, keys),
		dirty:  newBitset(keys),
		urgent: newBitset(keys),
		arena:  make([]byte, keys*arenaPerKey),
		alarm:  int64(keys) * 7 / 8,
	}
	t.setUrgentCounts(urgentCount)
	return t
}

func (t *keyTable) setUrgentCounts(count uint64) {
	for i := range t.slots {
		t.slots[i].urgentCount.Store(count)
	}
}

// reset empties a table that no add is inside.
func (t *keyTable) reset(urgentCount uint64) {
	clear(t.index)
	clear(t.slots)
	t.setUrgentCounts(urgentCount)
	t.dirty.reset()
	t.urgent.reset()
	t.used.Store(0)
	t.bytes.Store(0)
}

// filled reports whether room has to be made when this many slots and bytes are in use.
func (t *keyTable) filled(used, bytes int64) bool {
	return used > t.alarm || bytes > int64(len(t.arena))/8*7
}

// place returns the i-th place of the index for a hash.
func (t *keyTable) place(hash, i uint64) *atomic.Uint32 {
	return &t.index[(hash+i)&uint64(len(t.index)-1)]
}

// entry returns the index's entry for a slot: the slot's number, and in the remaining bits a
// tag of the hash.
func (t *keyTable) entry(hash, slot uint64) uint32 {
	return uint32(hash>>32)&^t.number | uint32(slot+1)
}

// matchSlot reports whether an entry of the index is the key's, and returns its slot.
func (t *keyTable) matchSlot(entry uint32, hash uint64, key []byte) (slot uint64, ok bool) {
	if (entry^uint32(hash>>32))&^t.number != 0 {
		return 0, false
	}
	slot = uint64(entry&t.number) - 1
	return slot, string(t.key(&t.slots[slot])) == string(key)
}

// add adds n to a key's counter.
func (t *keyTable) add(hash uint64, key []byte, n uint64) addOutcome {
	for i := range uint64(maxProbe) {
		entry := t.place(hash, i).Load()
		if entry == 0 {
			return t.enter(hash, i, key, n)
		}
		if slot, ok := t.matchSlot(entry, hash, key); ok {
			return t.count(slot, n)
		}
	}
	return full
}

// count adds n to a slot's counter.
func (t *keyTable) count(slot, n uint64) addOutcome {
	s := &t.slots[slot]
	state := s.state.Add(n)
	if state&closed != 0 {
		return replaced
	}
	was := state - n
	if was == 0 { // so that the flush visits it
		t.dirty.set(slot)
	}
	if s.urgentCount.Load()-1-was < n { // was < urgentCount <= was+n in one comparison, since urgentCount is at least 1
		t.urgent.set(slot)
		return urgent
	}
	return added
}

// enter adds n for a key that the index does not have in places before the i-th.
func (t *keyTable) enter(hash, i uint64, key []byte, n uint64) addOutcome {
	slot, end, ok := t.fillSlot(hash, key)
	if !ok {
		return full
	}
	out := full
	for ; i < maxProbe; i++ {
		place := t.place(hash, i)
		if place.CompareAndSwap(0, t.entry(hash, slot)) {
			out = t.count(slot, n)
			break
		}
		// Another add was first. If it added the same key, the slot stays unused.
		if other, ok := t.matchSlot(place.Load(), hash, key); ok {
			out = t.count(other, n)
			break
		}
	}
	used := int64(slot + 1)
	if out != replaced && t.filled(used, end) && !t.filled(used-1, end-t.slots[slot].room()) {
		out |= filling
	}
	return out
}

// fillSlot fills a slot for a key that is not in the index yet. end is the used part of the arena
// after that.
func (t *keyTable) fillSlot(hash uint64, key []byte) (slot uint64, end int64, ok bool) {
	limit := int64(len(t.slots))
	if t.used.Load() >= limit {
		return 0, 0, false
	}
	used := t.used.Add(1)
	if used > limit {
		return 0, 0, false
	}
	s := &t.slots[used-1]
	s.hash, s.len = hash, uint32(len(key))
	if s.room() == 0 {
		copy(s.short[:], key)
		return uint64(used - 1), t.bytes.Load(), true
	}
	if end = t.bytes.Add(int64(len(key))); end > int64(len(t.arena)) {
		return 0, 0, false // the slot stays unused until the table is replaced
	}
	s.off = uint32(end) - s.len
	copy(t.arena[s.off:end], key)
	return uint64(used - 1), end, true
}

// insert adds a key to a table that does not have it and that no other goroutine uses yet.
// It returns the slot, or -1 if there is no room.
func (t *keyTable) insert(hash uint64, key []byte) int {
	slot, _, ok := t.fillSlot(hash, key)
	for i := uint64(0); ok && i < maxProbe; i++ {
		if t.place(hash, i).CompareAndSwap(0, t.entry(hash, slot)) {
			return int(slot)
		}
	}
	return -1
}

// findSlot returns the slot of a key, or -1 if there is none.
func (t *keyTable) findSlot(hash uint64, key []byte) int {
	for i := range uint64(maxProbe) {
		entry := t.place(hash, i).Load()
		if entry == 0 {
			break
		}
		if slot, ok := t.matchSlot(entry, hash, key); ok {
			return int(slot)
		}
	}
	return -1
}

// key returns the key of a slot in use.
func (t *keyTable) key(s *keySlot) []byte {
	if s.len <= uint32(len(s.short)) {
		return s.short[:s.len:s.len]
	}
	return t.arena[s.off : s.off+s.len : s.off+s.len]
}

// room returns the number of bytes of the arena that a slot's key takes.
func (s *keySlot) room() int64 {
	if s.len <= uint32(len(s.short)) {
		return 0
	}
	return int64(s.len)
}

// drain zeroes the counters of the slots in from, and calls f for each with its count. It
// clears a slot's bit before the counter: a concurrent add sets the bit again.
func (t *keyTable) drain(from *bitset, f func(slot int, n uint64)) {
	from.drain(func(slot int) {
		if n := t.slots[slot].state.And(closed) & countMask; n > 0 {
			f(slot, n)
		}
	})
}

// close closes a slot and returns its last count.
func (s *keySlot) close() (n uint64) { return s.state.Or(closed) & countMask }
