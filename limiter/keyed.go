package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// Keyed limits each key to the same rate, such as 5/s for each user. It is safe
// for concurrent use. A key that it knows costs no lock and no allocation. It is a
// [Keys].
//
// It holds at most maxKeys buckets. Only a bucket that is full again is ever
// dropped, since a new one is just like it: so however many keys pass by, none
// gets a fresh burst by being forgotten. When the table is full of buckets in
// use, a new key passes unlimited, with [hotparam.ReasonOpen], and is counted in
// [Stats].Overflow. A bucket is in use until it has earned back what was taken,
// so maxKeys wants to be the number of keys expected within that time. One that
// starts short of its burst starts so again after it was full and dropped.
//
// Memory: 16 bytes for each of maxKeys at most, reserved; 48 bytes and the key's
// own for each key held. Idle keys are dropped as others come, known or new: within
// half a minute where one call comes for each 512 keys that there is room for.
type Keyed struct {
	g     atomic.Pointer[gcra]
	table *table[keyedWord]
	mu    sync.Mutex // held while the quota is changed
}

// keyedWord is a key's bucket under one quota: another quota means another node.
type keyedWord struct {
	g    *gcra
	word atomic.Int64
}

func newWord(hash uint64, key string, g *gcra, word int64) *node[keyedWord] {
	n := &node[keyedWord]{hash: hash, key: key}
	n.kept.g = g
	n.kept.word.Store(word)
	return n
}

// Stats counts what happened to many keys.
type Stats struct {
	Keys     int64  // held now
	Evicted  uint64 // dropped because they were as good as new
	Overflow uint64 // requests that passed unlimited, or uncharged, for want of room
}

// NewKeyed makes a limiter for up to maxKeys keys at a time, 1 to 16,777,216.
// Rate and burst hold for each key, as in [NewTokenBucket].
func NewKeyed(rate hotparam.Rate, burst int64, maxKeys int) (*Keyed, error) {
	g := &gcra{}
	if err := g.set(rate, burst); err != nil {
		return nil, err
	}
	return newKeyed(g, maxKeys)
}

func newKeyed(g *gcra, maxKeys int) (*Keyed, error) {
	t, err := newTable(maxKeys, dropFull)
	if err != nil {
		return nil, err
	}
	k := &Keyed{table: t}
	k.g.Store(g)
	return k, nil
}

// dropFull drops a bucket that is full at now.
func dropFull(w *keyedWord, now int64) bool {
	word := w.word.Load()
	return word <= now && w.word.CompareAndSwap(word, gone)
}

// Take takes n of the key's tokens if there are as many, else none. Hash is
// [hotparam.Hash] of key; it only finds, the bytes decide. Now is as for
// [TokenBucket]. The key's bytes are copied, and only when it is new.
func (k *Keyed) Take(now time.Duration, hash uint64, key []byte, n int64) hotparam.Decision {
	t, g := instant(now), k.g.Load()
	if b := k.table.find(hash, key); b != nil && b.kept.g == g {
		if v, ok := g.take(&b.kept.word, t, n); ok {
			if k.table.due(t) {
				k.table.tend(t)
			}
			return g.decision(v)
		}
	}
	return k.settle(t, hash, key, &Ask{N: n}).Decision
}

// Do does what is asked of the key at now, as Take does.
func (k *Keyed) Do(now time.Duration, hash uint64, key []byte, ask Ask) Result {
	t, g := instant(now), k.g.Load()
	ask.clamp()
	if b := k.table.find(hash, key); b != nil && b.kept.g == g && ask.Kind != Forget {
		if r, ok := g.do(&b.kept.word, t, &ask); ok {
			if k.table.due(t) {
				k.table.tend(t)
			}
			return r
		}
	}
	return k.settle(t, hash, key, &ask)
}

// settle does what is asked of a key that is not in the table, or not under the quota
// that holds now. Only a bucket that is not full enters it.
func (k *Keyed) settle(t int64, hash uint64, key []byte, ask *Ask) Result {
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	g, b := k.locked(hash, key)
	s.floor = g.current(s.floor, t)
	if b != nil {
		if ask.Kind == Forget {
			b.kept.word.Store(g.first(s.floor, t))
			ask = &Ask{Kind: Peek}
		}
		r, _ := g.do(&b.kept.word, t, ask) // not gone: that needs our lock
		return r
	}
	word, asked := g.first(s.floor, t), ask.ofNew()
	next, v, taken := g.ask(word, t, &asked)
	r := Result{Decision: g.decision(v), Taken: taken}
	if next == word && g.missing == 0 {
		return r
	}
	if !k.table.room(s, t) {
		return open(ask, r)
	}
	k.table.put(newWord(hash, string(key), g, next))
	return r
}

// open is what becomes of a new key for which there is no room, instead of r. What can
// never pass does not.
func open(ask *Ask, r Result) Result {
	if !r.Allowed && r.RetryAfter == 0 {
		return r
	}
	r = Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonOpen}}
	if ask.Kind.takes() {
		r.Taken = ask.N
	}
	return r
}

// locked is the arithmetic that holds now, and the key's bucket under it; nil: it has
// none. The caller holds the stripe's lock.
func (k *Keyed) locked(hash uint64, key []byte) (*gcra, *node[keyedWord]) {
	g, b := k.g.Load(), k.table.find(hash, key)
	if b == nil || b.kept.g == g {
		return g, b
	}
	heir := newWord(hash, b.key, g, b.kept.g.descend(g, b.kept.word.Swap(gone)))
	k.table.replace(b, heir)
	return g, heir
}

// Peek is the decision that Take would give for n, but takes nothing: Remaining
// is what the key's bucket holds.
func (k *Keyed) Peek(now time.Duration, hash uint64, key []byte, n int64) hotparam.Decision {
	t, g := instant(now), k.g.Load()
	if b := k.table.find(hash, key); b != nil && b.kept.g == g {
		if word := b.kept.word.Load(); word != gone {
			return g.peek(word, t, n)
		}
	}
	return k.settle(t, hash, key, &Ask{Kind: Peek, N: n}).Decision
}

// Charge takes n of the key's tokens, whether there are as many or not, as
// [TokenBucket.Charge] does. A new key for which there is no room is charged
// nothing, and counted in [Stats].Overflow.
func (k *Keyed) Charge(now time.Duration, hash uint64, key []byte, n int64) {
	if n < 1 {
		return
	}
	t, g := instant(now), k.g.Load()
	if b := k.table.find(hash, key); b != nil && b.kept.g == g && g.charge(&b.kept.word, t, n) {
		if k.table.due(t) {
			k.table.tend(t)
		}
		return
	}
	k.settle(t, hash, key, &Ask{Kind: Charge, N: n})
}

// GiveBack returns n of the key's tokens that one Take has just taken, with
// [hotparam.ReasonWithin]. A bucket that was dropped since was full, and its
// key has nothing to get back.
func (k *Keyed) GiveBack(hash uint64, key []byte, n int64) {
	b := k.table.find(hash, key)
	if b == nil || b.kept.g.giveBack(&b.kept.word, n) {
		return
	}
	s := k.table.stripe(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, b := k.locked(hash, key); b != nil {
		g.giveBack(&b.kept.word, n)
	}
}

// Stats is a snapshot of the counters.
func (k *Keyed) Stats() Stats { return k.table.stats() }

// Sweep drops at once all buckets that are full at now.
func (k *Keyed) Sweep(now time.Duration) { k.table.sweepAll(instant(now)) }

// SetQuota holds all keys to another quota from now on: each lacks as many tokens as
// before, if there is room for as many. It costs the same for any number of keys, and
// a key a lock the next time that it is asked. It fails as [TokenBucket.SetQuota] does.
func (k *Keyed) SetQuota(q *hotparam.Quota, now time.Duration) error {
	next := &gcra{}
	if err := next.inherit(q); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.g.Load()
	switch {
	case next.leaky != g.leaky:
		return errOtherKind(q)
	case next.same(g):
		return nil
	}
	g.succeed(next, instant(now))
	k.g.Store(next)
	return nil
}
