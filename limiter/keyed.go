package limiter

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Keyed limits each key to the same rate, such as 5/s for each user. It is safe
// for concurrent use. A key that it knows costs no lock and no allocation.
//
// It holds at most maxKeys buckets. Only a bucket that is full again is ever
// dropped, since a new one is just like it: so however many keys pass by, none
// gets a fresh burst by being forgotten. When the table is full of buckets in
// use, a new key passes unlimited, with [hotparam.ReasonOpen], and is counted in
// [Stats].Overflow. A bucket is in use until it has earned back what was taken,
// so maxKeys wants to be the number of keys expected within that time.
//
// Memory: 16 bytes for each of maxKeys at most, reserved; 48 bytes and the key's
// own for each key held.
type Keyed struct {
	gcra
	table    *table
	evicted  atomic.Uint64
	overflow atomic.Uint64
}

// Stats counts what happened in a [Keyed].
type Stats struct {
	Keys     int64  // buckets held now
	Evicted  uint64 // buckets dropped because they were full again
	Overflow uint64 // requests that passed unlimited, or uncharged, for want of room
}

// maxMaxKeys keeps a typing error from reserving all memory.
const maxMaxKeys = 1 << 24

// NewKeyed makes a limiter for up to maxKeys keys at a time, 1 to 16,777,216.
// Rate and burst hold for each key, as in [NewTokenBucket].
func NewKeyed(rate hotparam.Rate, burst int64, maxKeys int) (*Keyed, error) {
	g, err := newGCRA(rate, burst)
	if err != nil {
		return nil, err
	}
	if maxKeys < 1 || maxKeys > maxMaxKeys {
		return nil, fmt.Errorf("limiter: maxKeys %d: must be 1 to %d", maxKeys, maxMaxKeys)
	}
	return &Keyed{gcra: g, table: newTable(maxKeys)}, nil
}

// Take takes n of the key's tokens if there are as many, else none. Hash is
// [hotparam.Hash] of key; it only finds, the bytes decide. Now is as for
// [TokenBucket]. The key's bytes are copied, and only when it is new.
func (k *Keyed) Take(now time.Duration, hash uint64, key []byte, n int64) hotparam.Decision {
	t := instant(now)
	if b := k.table.find(hash, key); b != nil {
		if v, ok := k.take(&b.word, t, n); ok {
			return k.decision(v)
		}
	}
	return k.takeNew(t, hash, key, n)
}

// takeNew takes from the bucket of a key that is not in the table. Only a
// bucket from which something was taken enters it.
func (k *Keyed) takeNew(t int64, hash uint64, key []byte, n int64) hotparam.Decision {
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := k.table.find(hash, key); b != nil { // another was faster
		v, _ := k.take(&b.word, t, n) // not gone: dropping needs our lock
		return k.decision(v)
	}
	s.floor = k.current(s.floor, t)
	word, v := k.step(s.floor, t, n)
	if word == s.floor {
		return k.decision(v)
	}
	if !k.enter(s, t, hash, key, word) {
		return hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}
	}
	return k.decision(v)
}

// enter puts a new key with this word into the table; false when there is no
// room. The caller holds the stripe's lock.
func (k *Keyed) enter(s *stripe, t int64, hash uint64, key []byte, word int64) bool {
	look := lookAlways
	if k.table.full() {
		look = lookFull
	}
	k.evicted.Add(k.table.sweep(s, t, look))
	if !k.table.add(hash, key, word) {
		k.overflow.Add(1)
		return false
	}
	return true
}

// Peek is the decision that Take would give for n, but takes nothing: Remaining
// is what the key's bucket holds.
func (k *Keyed) Peek(now time.Duration, hash uint64, key []byte, n int64) hotparam.Decision {
	t := instant(now)
	if b := k.table.find(hash, key); b != nil {
		if word := b.word.Load(); word != gone {
			return k.peek(word, t, n)
		}
	}
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := k.table.find(hash, key); b != nil { // another was faster
		return k.peek(b.word.Load(), t, n)
	}
	return k.peek(k.current(s.floor, t), t, n)
}

// Charge takes n of the key's tokens, whether there are as many or not, as
// [TokenBucket.Charge] does. A new key for which there is no room is charged
// nothing, and counted in [Stats].Overflow.
func (k *Keyed) Charge(now time.Duration, hash uint64, key []byte, n int64) {
	if n < 1 {
		return
	}
	t := instant(now)
	if b := k.table.find(hash, key); b != nil && k.charge(&b.word, t, n) {
		return
	}
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := k.table.find(hash, key); b != nil { // another was faster
		k.charge(&b.word, t, n)
		return
	}
	s.floor = k.current(s.floor, t)
	k.enter(s, t, hash, key, k.charged(s.floor, t, n))
}

// GiveBack returns n of the key's tokens that one Take has just taken, with
// [hotparam.ReasonWithin]. A bucket that was dropped since was full, and its
// key has nothing to get back.
func (k *Keyed) GiveBack(hash uint64, key []byte, n int64) {
	if b := k.table.find(hash, key); b != nil {
		k.giveBack(&b.word, n)
	}
}

// Stats is a snapshot of the counters.
func (k *Keyed) Stats() Stats {
	return Stats{Keys: k.table.len(), Evicted: k.evicted.Load(), Overflow: k.overflow.Load()}
}
