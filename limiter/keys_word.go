package limiter

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// wordKeys is [Keys] with states of one word each. A key that it knows costs no lock and no
// allocation.
//
// Only a full bucket is ever dropped, since a new one equals it. One that starts short of its
// burst starts so again after it was full and dropped. A full table evicts buckets that are not:
// see table.
//
// Memory: at most 16 bytes for each of maxKeys, reserved; 80 bytes for each key held, and those
// of the key if they are over 27; and once the table is full, at most 80 bytes for each of maxKeys
// until all is paid that evicted keys owe. Idle keys are dropped as others arrive, known or new: within
// half a minute if one call arrives for each 512 keys that there is room for.
type wordKeys struct {
	at     atomic.Pointer[reckoning]
	table  *table[keyedWord]
	custom map[rules.Algorithm]Algorithm
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

func newWordKeys(r *reckoning, maxKeys int, custom map[rules.Algorithm]Algorithm) (*wordKeys, error) {
	k := &wordKeys{custom: custom}
	t, err := newTable(maxKeys, tableRules[keyedWord]{drop: dropFull, evict: k.evict})
	if err != nil {
		return nil, err
	}
	k.table = t
	k.at.Store(r)
	return k, nil
}

// dropFull drops a bucket that is full at now, unless it has marks after now: the key's next
// bucket starts without back, so these marks would name what is taken from it.
func dropFull(w *keyedWord, now int64) (dropped bool, until int64) {
	word := w.word.Load()
	if word+w.back() > now || word > now {
		return false, word
	}
	if w.r.successor.Load() != nil { // it was full, and may owe more since
		if latest := w.r.latest(w.line(word)); latest > now {
			return false, latest
		}
	}
	return w.word.CompareAndSwap(word, gone), word
}

// wordNumbers is how many numbers of a debt a word needs.
const wordNumbers = 1

// evict implements tableRules.
func (k *wordKeys) evict(s *stripe[keyedWord], n *node[keyedWord], now int64) bool {
	r := k.current()
	l := n.kept.line(n.kept.word.Swap(gone))
	n.kept.r.descend(r, &l, []byte(n.key()))
	k.owe(s, r, n.keyed(k.table.seed), &l, now)
	return true
}

// current returns the arithmetic of the words in force, or the last one.
func (k *wordKeys) current() *reckoning {
	r := k.at.Load()
	if r.states != nil {
		return r.last
	}
	return r
}

// owe adds a line of r to the debts.
func (k *wordKeys) owe(s *stripe[keyedWord], r *reckoning, hash uint64, l *line, t int64) {
	d := k.table.debtsFor(s, wordNumbers, t)
	k.convert(d, r)
	owed := debt{debtUntil: l.word}
	if l.back != 0 {
		owed[debtMark] = l.mark()
	}
	d.add(hash, l.word-t > r.fill-r.interval, &owed, t)
}

// convert makes the debts those of words of r.
func (k *wordKeys) convert(d *debts, r *reckoning) {
	if d.r != nil && d.r != r {
		d.marks = max(d.marks, d.until) // what was taken under the other quota has the words as marks
		d.move(func(at int64) int64 {
			l := line{word: at}
			d.r.descend(r, &l, nil)
			return l.word
		})
	}
	d.r = r
}

// first returns the line with which a key begins at t that is not in the table.
func (k *wordKeys) first(s *stripe[keyedWord], r *reckoning, key []byte, t int64) line {
	l := line{word: r.begin(s.floor, t, key)}
	if r.since > 0 { // there may be marks of another line, under another quota
		l.born = t
	}
	d := s.settleDebts(t)
	if d == nil {
		return l
	}
	k.convert(d, r)
	if owed, found := k.table.owed(s, maphash.Bytes(k.table.seed, key), t); found {
		l.word = max(l.word, owed[debtUntil])
	}
	if d.marks > t { // there may be marks of the line of an evicted key
		l.born, l.back = t, max(0, d.marks-l.word)
	}
	return l
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
		k.moveKey(now, hash, key, s, r, b)
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
	l, asked := k.first(s, r, key, t), ask.ofNew()
	next, v, taken := r.ask(l.word, t, &asked)
	res := Result{Decision: r.decision(v), Taken: taken}
	if next == l.word && r.missing == 0 {
		return res
	}
	l.word = next
	if taken > 0 {
		res.name(l.mark(), t)
		if v.delay > 0 {
			reach(&r.gcra.due, t+v.delay)
		}
	}
	if !k.table.room(s, t) {
		k.owe(s, r, maphash.Bytes(k.table.seed, key), &l, t)
		return res
	}
	b = newNode[keyedWord](hash, key)
	b.kept.set(r, &l)
	k.table.put(hash, b)
	return res
}

// moveKey moves a key to the states that have the keys from now on, with what it owes.
func (k *wordKeys) moveKey(now time.Duration, hash uint64, key []byte, s *stripe[keyedWord], r *reckoning, b *node[keyedWord]) {
	t := instant(now)
	if b != nil {
		r.states.take(now, hash, key, b.kept.r.side(b.kept.line(b.kept.word.Swap(gone)), t))
		k.table.remove(hash, b)
		return
	}
	d := s.settleDebts(t)
	if d == nil || r.states.states.table.has(hash, key) {
		return
	}
	k.convert(d, r.last)
	if owed, found := k.table.owed(s, maphash.Bytes(k.table.seed, key), t); found {
		r.states.take(now, hash, key, r.last.side(line{word: owed[debtUntil], born: t, back: max(0, d.marks-owed[debtUntil])}, t))
	}
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
		s.Keys, s.Evicted = s.Keys+more.Keys, s.Evicted+more.Evicted
		s.Displaced, s.Inherited = s.Displaced+more.Displaced, s.Inherited+more.Inherited
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
func (k *wordKeys) SetQuota(q *rules.Quota, now time.Duration) error {
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
