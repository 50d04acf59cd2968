package limiter

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// table is a bounded hash table of buckets: chains that are read without a lock
// and changed under the lock of their stripe.
//
// A reader may meet a bucket while it is dropped. That is settled in the
// bucket's own word: it is swapped for gone, from a full bucket's, before the
// bucket leaves its chain; so whoever takes from it either comes first, and it
// stays, or sees that it is gone and looks again under the lock. A map under a
// lock for each shard was the alternative: there the hottest key's lock is what
// all wait for.
type table struct {
	heads   []atomic.Pointer[bucket] // a power of two, at least max
	stripes []stripe                 // a power of two
	max     int64
	held    atomic.Int64
}

// bucket is one key's; all but word and next are fixed.
type bucket struct {
	hash uint64
	key  string
	word atomic.Int64
	next atomic.Pointer[bucket]
}

// stripe is the right to change a run of the heads.
type stripe struct {
	run  []atomic.Pointer[bucket] // fixed
	mu   sync.Mutex
	hand int // the head of the run to sweep next
	// floor is the latest instant at which a bucket was dropped. Whatever was
	// dropped was full by then, so a bucket that starts with this word has no
	// more tokens than the one that may have been dropped before it, even when
	// the clock goes back.
	floor int64
	_     [16]byte // a cache line of its own
}

const (
	maxStripes     = 64
	headsPerStripe = 64 // at least, unless there is but one stripe
)

// How many heads a new key sweeps: a bounded piece of work, whatever the flood.
// Two on every arrival see the whole table while half as many keys arrive as it
// has room for. A full table is worth a longer look.
const (
	lookAlways = 2
	lookFull   = 16
)

func newTable(maxKeys int) *table {
	t := &table{heads: make([]atomic.Pointer[bucket], 1<<bits.Len(uint(maxKeys-1))), max: int64(maxKeys)}
	t.stripes = make([]stripe, min(max(len(t.heads)/headsPerStripe, 1), maxStripes))
	run := len(t.heads) / len(t.stripes)
	for i := range t.stripes {
		t.stripes[i].run = t.heads[i*run : (i+1)*run]
	}
	return t
}

func (t *table) len() int64 { return t.held.Load() }
func (t *table) full() bool { return t.held.Load() >= t.max }

func (t *table) head(hash uint64) uint64 { return hash & uint64(len(t.heads)-1) }

func (t *table) stripe(hash uint64) *stripe {
	return &t.stripes[t.head(hash)*uint64(len(t.stripes))/uint64(len(t.heads))]
}

// find needs no lock: it sees every key that was added before and not dropped
// since. Under the lock of the hash's stripe what it finds is not gone either.
func (t *table) find(hash uint64, key []byte) *bucket {
	for b := t.heads[t.head(hash)].Load(); b != nil; b = b.next.Load() {
		if b.hash == hash && b.key == string(key) {
			return b
		}
	}
	return nil
}

// add puts in a key that is not there, unless the table is full. The caller
// holds the lock of the hash's stripe.
func (t *table) add(hash uint64, key []byte, word int64) bool {
	if t.held.Add(1) > t.max {
		t.held.Add(-1)
		return false
	}
	head := &t.heads[t.head(hash)]
	b := &bucket{hash: hash, key: string(key)}
	b.word.Store(word)
	b.next.Store(head.Load())
	head.Store(b)
	return true
}

// sweep drops the buckets that are full at now under the stripe's next heads,
// and counts them. The caller holds the stripe's lock.
func (t *table) sweep(s *stripe, now int64, heads int) (dropped uint64) {
	for range min(heads, len(s.run)) {
		link := &s.run[s.hand]
		for b := link.Load(); b != nil; b = link.Load() {
			if word := b.word.Load(); word > now || !b.word.CompareAndSwap(word, gone) {
				link = &b.next
				continue
			}
			link.Store(b.next.Load())
			dropped++
		}
		s.hand = (s.hand + 1) % len(s.run)
	}
	if dropped > 0 {
		s.floor = max(s.floor, now)
		t.held.Add(-int64(dropped))
	}
	return dropped
}
