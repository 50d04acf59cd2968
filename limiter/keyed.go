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
// Memory: 16 bytes for each of maxKeys at most, reserved; 64 bytes and the key's
// own for each key held. Idle keys are dropped as others come, known or new: within
// half a minute where one call comes for each 512 keys that there is room for.
type Keyed struct {
	at     atomic.Pointer[reckoning]
	table  *table[keyedWord]
	custom map[hotparam.Algorithm]Algorithm
	mu     sync.Mutex // held while the quota is changed
}

// keyedWord is a key's bucket under one quota: another quota means another node.
type keyedWord struct {
	r *reckoning
	cell
}

func newWord(hash uint64, key string, r *reckoning, l *line) *node[keyedWord] {
	n := &node[keyedWord]{hash: hash, key: key}
	n.kept.r = r
	n.kept.store(l)
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
	r := &reckoning{}
	if err := r.set(rate, burst); err != nil {
		return nil, err
	}
	return newKeyed(r, maxKeys, nil)
}

func newKeyed(r *reckoning, maxKeys int, custom map[hotparam.Algorithm]Algorithm) (*Keyed, error) {
	t, err := newTable(maxKeys, dropFull)
	if err != nil {
		return nil, err
	}
	k := &Keyed{table: t, custom: custom}
	k.at.Store(r)
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
	t, r := instant(now), k.at.Load()
	if b := k.table.find(hash, key); b != nil && b.kept.r == r {
		if v, ok := r.take(&b.kept.cell, t, n); ok {
			if k.table.due(t) {
				k.table.tend(t)
			}
			return r.decision(v)
		}
	}
	return k.settle(now, hash, key, &Ask{N: n}).Decision
}

// Do does what is asked of the key at now, as Take does.
func (k *Keyed) Do(now time.Duration, hash uint64, key []byte, ask Ask) Result {
	t, r := instant(now), k.at.Load()
	ask.clamp()
	if b := k.table.find(hash, key); b != nil && b.kept.r == r && ask.Kind < Return {
		if res, ok := r.do(&b.kept.cell, t, &ask); ok {
			if k.table.due(t) {
				k.table.tend(t)
			}
			return res
		}
	}
	return k.settle(now, hash, key, &ask)
}

// settle does what is asked of a key that is not in the table, or not under the quota
// that holds now, and what is done one after the other. Only a bucket that is not full
// enters the table.
func (k *Keyed) settle(now time.Duration, hash uint64, key []byte, ask *Ask) Result {
	s := k.table.stripe(hash)
	s.mu.Lock()
	r, b := k.locked(hash, key)
	if r.states != nil {
		if b != nil {
			l := b.kept.line(b.kept.word.Swap(gone))
			r.states.take(now, hash, b.key, b.kept.r.side(l, instant(now)))
			k.table.remove(b)
		}
		s.mu.Unlock()
		return r.states.Do(now, hash, key, *ask)
	}
	defer s.mu.Unlock()
	t := instant(now)
	s.floor = r.current(s.floor, t)
	if b != nil {
		switch {
		case ask.Kind == Return && ask.N >= 0:
			res, _ := r.giveBack(&b.kept.cell, t, ask)
			return res
		case ask.Kind == Forget:
			b.kept.word.Store(r.first(s.floor, t))
			ask = &Ask{Kind: Peek}
		}
		res, _ := r.do(&b.kept.cell, t, ask) // not gone: that needs our lock
		return res
	}
	l, asked := line{word: r.first(s.floor, t)}, ask.ofNew()
	next, v, taken := r.ask(l.word, t, &asked)
	res := Result{Decision: r.decision(v), Taken: taken}
	if next == l.word && r.missing == 0 {
		return res
	}
	if !k.table.room(s, t) {
		return open(ask, res)
	}
	l.word = next
	if r.since > 0 { // there may be marks of another line, by another quota
		l.born = t
	}
	if taken > 0 {
		res.name(l.mark(), t)
		if v.delay > 0 {
			reach(&r.gcra.due, t+v.delay)
		}
	}
	k.table.put(newWord(hash, string(key), r, &l))
	return res
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

// locked is the arithmetic that holds now, and the key's bucket under it, or under the one
// before where the keys are elsewhere from now on; nil: it has none. The caller holds the
// stripe's lock.
func (k *Keyed) locked(hash uint64, key []byte) (*reckoning, *node[keyedWord]) {
	r, b := k.at.Load(), k.table.find(hash, key)
	if b == nil || b.kept.r == r {
		return r, b
	}
	heir := r
	if r.states != nil {
		if heir = r.last; b.kept.r == heir {
			return r, b
		}
	}
	l := b.kept.line(b.kept.word.Swap(gone))
	b.kept.r.descend(heir, &l)
	moved := newWord(hash, b.key, heir, &l)
	k.table.replace(b, moved)
	return r, moved
}

// Peek is the decision that Take would give for n, but takes nothing: Remaining
// is what the key's bucket holds.
func (k *Keyed) Peek(now time.Duration, hash uint64, key []byte, n int64) hotparam.Decision {
	t, r := instant(now), k.at.Load()
	if b := k.table.find(hash, key); b != nil && b.kept.r == r {
		if word := b.kept.word.Load(); word != gone {
			return r.peek(word, t, n)
		}
	}
	return k.settle(now, hash, key, &Ask{Kind: Peek, N: n}).Decision
}

// Charge takes n of the key's tokens, whether there are as many or not, as
// [TokenBucket.Charge] does. A new key for which there is no room is charged
// nothing, and counted in [Stats].Overflow.
func (k *Keyed) Charge(now time.Duration, hash uint64, key []byte, n int64) {
	if n < 1 {
		return
	}
	t, r := instant(now), k.at.Load()
	if b := k.table.find(hash, key); b != nil && b.kept.r == r && r.charge(&b.kept.cell, t, n) {
		if k.table.due(t) {
			k.table.tend(t)
		}
		return
	}
	k.settle(now, hash, key, &Ask{Kind: Charge, N: n})
}

// Stats is a snapshot of the counters.
func (k *Keyed) Stats() Stats {
	s := k.table.stats()
	if states := k.at.Load().states; states != nil {
		more := states.Stats()
		s.Keys, s.Evicted, s.Overflow = s.Keys+more.Keys, s.Evicted+more.Evicted, s.Overflow+more.Overflow
	}
	return s
}

// Sweep drops at once all buckets that are full at now.
func (k *Keyed) Sweep(now time.Duration) {
	k.table.sweepAll(instant(now))
	if states := k.at.Load().states; states != nil {
		states.Sweep(now)
	}
}

// SetQuota holds all keys to another quota from now on: each lacks as many tokens as
// before. It costs the same for any number of keys, and a key a lock the next time that it
// is asked. Where the quota takes more than one word all keys have locks from then on.
func (k *Keyed) SetQuota(q *hotparam.Quota, now time.Duration) error {
	if _, err := NewAlgorithm(q, k.custom); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, next := k.at.Load(), &reckoning{}
	switch {
	case r.states != nil:
		return r.states.SetQuota(q, now)
	case !r.plain(q), r.due.Load() > instant(now) && !r.equals(q):
		states, err := newStateKeys(q, int(k.table.max), k.custom)
		if err != nil {
			return err
		}
		next.states, next.last = states, r
		k.at.Store(next)
		return nil
	}
	if err := next.setQuota(q); err != nil {
		return err
	}
	if !next.same(&r.gcra) {
		r.succeed(next, instant(now))
		k.at.Store(next)
	}
	return nil
}
