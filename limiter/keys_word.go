package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// wordKeys is [Keys] with states of one word each. A key that it knows costs no lock and no
// allocation.
//
// Only a full bucket is ever dropped, since a new one equals it. One that starts short of its
// burst starts so again after it was full and dropped.
//
// Memory: at most 16 bytes for each of maxKeys, reserved; 80 bytes for each key held, and those
// of the key if they are over 27. Idle keys are dropped as others arrive, known or new: within
// half a minute if one call arrives for each 512 keys that there is room for.
type wordKeys struct {
	at     atomic.Pointer[reckoning]
	table  *table[keyedWord]
	custom map[hotparam.Algorithm]Algorithm
	mu     sync.Mutex // held while the quota is changed
}

// keyedWord is a key's bucket under one quota. Another quota means another node.
type keyedWord struct {
	r *reckoning
	atomicLine
}

func (w *keyedWord) set(r *reckoning, l *line) {
	w.r = r
	w.store(l)
}

func newWordKeys(r *reckoning, maxKeys int, custom map[hotparam.Algorithm]Algorithm) (*wordKeys, error) {
	t, err := newTable(maxKeys, dropFull)
	if err != nil {
		return nil, err
	}
	k := &wordKeys{table: t, custom: custom}
	k.at.Store(r)
	return k, nil
}

// dropFull drops a bucket that is full at now, unless it has marks after now: the key's next
// bucket starts without back, so these marks would name what is taken from it.
func dropFull(w *keyedWord, now int64) bool {
	word := w.word.Load()
	if word+w.back() > now || word > now {
		return false
	}
	if w.r.successor.Load() != nil && w.r.latest(w.line(word)) > now { // it was full, and owes more since
		return false
	}
	return w.word.CompareAndSwap(word, gone)
}

// Do implements [Keys].
func (k *wordKeys) Do(now time.Duration, hash uint64, key []byte, ask Ask) Result {
	t, r := instant(now), k.at.Load()
	ask.clamp()
	if b := k.table.find(hash, key); b != nil && b.kept.r == r && ask.Kind < Return {
		if res, ok := r.do(&b.kept.atomicLine, t, &ask); ok {
			if k.table.due(t) {
				k.table.tend(t)
			}
			return res
		}
	}
	return k.settle(now, hash, key, &ask)
}

// settle executes an ask of a key that is not in the table or not under the current quota, and
// asks that are serialized. Only a bucket that is not full enters the table.
func (k *wordKeys) settle(now time.Duration, hash uint64, key []byte, ask *Ask) Result {
	s := k.table.stripe(hash)
	s.mu.Lock()
	r, b := k.locked(hash, key)
	if r.states != nil {
		if b != nil {
			l := b.kept.line(b.kept.word.Swap(gone))
			r.states.take(now, hash, key, b.kept.r.side(l, instant(now)))
			k.table.remove(hash, b)
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
			res, _ := r.giveBack(&b.kept.atomicLine, t, ask)
			return res
		case ask.Kind == Forget:
			b.kept.word.Store(r.begin(s.floor, t, key))
			ask = &Ask{Kind: Peek}
		}
		res, _ := r.do(&b.kept.atomicLine, t, ask) // not gone: that needs our lock
		return res
	}
	l, asked := line{word: r.begin(s.floor, t, key)}, ask.ofNew()
	next, v, taken := r.ask(l.word, t, &asked)
	res := Result{Decision: r.decision(v), Taken: taken}
	if next == l.word && r.missing == 0 {
		return res
	}
	if !k.table.room(s, t) {
		return open(ask, res)
	}
	l.word = next
	if r.since > 0 { // there may be marks of another line, under another quota
		l.born = t
	}
	if taken > 0 {
		res.name(l.mark(), t)
		if v.delay > 0 {
			reach(&r.gcra.due, t+v.delay)
		}
	}
	b = newNode[keyedWord](hash, key)
	b.kept.set(r, &l)
	k.table.put(hash, b)
	return res
}

// open returns the result of an ask of a new key for which there is no room, instead of r.
// What can never pass does not.
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

// locked returns the current arithmetic, and the key's bucket under it, or under the one
// before if the keys are elsewhere from now on, or nil. The caller holds the stripe's lock.
func (k *wordKeys) locked(hash uint64, key []byte) (*reckoning, *node[keyedWord]) {
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
	b.kept.r.descend(heir, &l, key)
	moved := b.anew()
	moved.kept.set(heir, &l)
	k.table.replace(hash, b, moved)
	return r, moved
}

// Stats implements [Keys].
func (k *wordKeys) Stats() Stats {
	s := k.table.stats()
	if states := k.at.Load().states; states != nil {
		more := states.Stats()
		s.Keys, s.Evicted, s.Overflow = s.Keys+more.Keys, s.Evicted+more.Evicted, s.Overflow+more.Overflow
	}
	return s
}

// Sweep implements [Keys].
func (k *wordKeys) Sweep(now time.Duration) {
	k.table.sweepAll(instant(now))
	if states := k.at.Load().states; states != nil {
		states.Sweep(now)
	}
}

// SetQuota implements [Keys]: each key lacks as many tokens as before. It costs the same for
// any number of keys, and each key a lock the next time it is asked. If the quota needs more
// than one word, all keys have locks from then on.
func (k *wordKeys) SetQuota(q *hotparam.Quota, now time.Duration) error {
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
		states.rule.Load().opening = r.opening(instant(now))
		k.at.Store(next)
		return nil
	}
	if err := next.setQuota(q); err != nil {
		return err
	}
	if !next.same(&r.gcra) {
		t := instant(now)
		next.unknown = r.unknown.each(t, func(_ uint64, word int64) int64 {
			l := line{word: word}
			next.changed(&r.gcra, &l, t)
			return l.word
		})
		r.succeed(next, t)
		k.at.Store(next)
	}
	return nil
}
