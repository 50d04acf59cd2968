package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// tokenBucket is a [Bucket] whose state is one word. It is lock-free, and allocates nothing
// once made.
//
// Instants before 0 and after 146 years count as the nearest of them. A clock that goes back
// by up to a minute earns nothing twice; one that goes back by more than that and the deepest
// debt, or the longest delay of a reservation, is taken for a new clock, on which the bucket
// starts empty.
type tokenBucket struct {
	at     atomic.Pointer[quotaWord]
	heir   atomic.Pointer[lockedBucket] // takes its place under a quota that needs more than a word; nil until then
	custom map[rules.Algorithm]Algorithm
	mu     sync.Mutex // held while the quota is changed, and for a Return
	first  quotaWord
	_      [16]byte // two cache lines of its own: 128 bytes
}

// quotaWord is a bucket under one quota. Another quota means another quotaWord, so whoever has
// read the arithmetic has read the word that belongs to it.
type quotaWord struct {
	gcra
	atomicLine
}

// newBucketed returns a bucket of a quota for which bucketed is true.
func newBucketed(q *rules.Quota, custom map[rules.Algorithm]Algorithm) (*tokenBucket, error) {
	b := &tokenBucket{custom: custom}
	b.at.Store(&b.first)
	if err := b.first.setQuota(q); err != nil {
		return nil, err
	}
	if b.first.missing > 0 {
		b.first.word.Store(unborn)
	}
	return b, nil
}

// settled returns the word once a change of the quota is complete; an unborn one starts at t.
// It returns nil if an heir has taken its place.
func (b *tokenBucket) settled(t int64) *quotaWord {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(t)
}

// current is settled for callers that hold the lock.
func (b *tokenBucket) current(t int64) *quotaWord {
	if b.heir.Load() != nil {
		return nil
	}
	c := b.at.Load()
	c.word.CompareAndSwap(unborn, c.gcra.first(0, t))
	return c
}

// take is Do for the Ask{N: n} of a [Local], without a Result.
func (b *tokenBucket) take(now time.Duration, n int64) rules.Decision {
	c, t := b.at.Load(), instant(now)
	v, ok := c.take(&c.atomicLine, t, n)
	for !ok {
		if c = b.settled(t); c == nil {
			return b.heir.Load().Do(now, Ask{N: n}).Decision
		}
		v, ok = c.take(&c.atomicLine, t, n)
	}
	return c.decision(v)
}

// TakeOne is Do for the Ask{N: 1} of a caller that never gives back: its results stay in
// registers, where a Result is written and copied. Callers find it by a type assertion. It is
// no method of [Bucket], since other buckets have nothing to gain by it.
func (b *tokenBucket) TakeOne(now time.Duration) (allowed bool, reason rules.Reason, limit, remaining int64, retryAfter, resetAfter, delay time.Duration) {
	c, t := b.at.Load(), instant(now)
	v, ok := c.take(&c.atomicLine, t, 1)
	for !ok {
		if c = b.settled(t); c == nil {
			d := b.heir.Load().Do(now, Ask{N: 1}).Decision
			return d.Allowed, d.Reason, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Delay
		}
		v, ok = c.take(&c.atomicLine, t, 1)
	}
	d := c.decision(v)
	return d.Allowed, d.Reason, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Delay
}

// Do implements [Bucket].
func (b *tokenBucket) Do(now time.Duration, ask Ask) Result {
	t := instant(now)
	if ask.Kind == Forget || ask.Kind == Return && ask.N >= 0 {
		return b.rewind(now, &ask)
	}
	ask.clamp()
	for c := b.at.Load(); c != nil; c = b.settled(t) {
		if r, ok := c.do(&c.atomicLine, t, &ask); ok {
			return r
		}
	}
	return b.heir.Load().Do(now, ask)
}

// rewind executes a Forget or a Return. They are serialized.
func (b *tokenBucket) rewind(now time.Duration, ask *Ask) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := instant(now)
	c := b.current(t)
	if c == nil {
		return b.heir.Load().Do(now, *ask)
	}
	if ask.Kind == Forget {
		c.rest.Store(&lineRest{born: t})
		c.word.Store(c.gcra.first(0, t))
		r, _ := c.do(&c.atomicLine, t, &Ask{Kind: Peek})
		return r
	}
	r, _ := c.giveBack(&c.atomicLine, t, ask) // not gone: that needs our lock
	return r
}

// FreshAfter implements [Bucket].
func (b *tokenBucket) FreshAfter(now time.Duration) time.Duration {
	if heir := b.heir.Load(); heir != nil {
		return heir.FreshAfter(now)
	}
	return b.Do(now, Ask{Kind: Peek}).ResetAfter
}

// SetQuota implements [Bucket]. Under a quota that needs more than one word the bucket has a
// lock from then on.
func (b *tokenBucket) SetQuota(q *rules.Quota, now time.Duration) error {
	if _, err := NewAlgorithm(q, b.custom); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if heir := b.heir.Load(); heir != nil {
		return heir.SetQuota(q, now)
	}
	c := b.at.Load()
	next := &quotaWord{}
	if c.plain(q) {
		if err := next.setQuota(q); err != nil {
			return err
		}
		if next.same(&c.gcra) {
			return nil
		}
	}
	t := instant(now)
	word := c.word.Swap(gone)
	switch {
	case !c.plain(q) || c.due.Load() > t:
		return b.bequeath(c, word, q, now)
	case word == unborn:
		next.word.Store(next.gcra.first(0, t))
	default:
		l := c.line(c.gcra.current(word, t))
		next.gcra.changed(&c.gcra, &l, t)
		next.atomicLine.store(&l)
	}
	next.inherit(&c.gcra)
	b.at.Store(next)
	return nil
}

// bequeath hands the content of the word to a bucket with a lock. The caller holds the lock.
func (b *tokenBucket) bequeath(c *quotaWord, word int64, q *rules.Quota, now time.Duration) error {
	heir := &lockedBucket{custom: b.custom}
	if t := instant(now); word != unborn {
		heir.sides.put(c.side(c.line(c.gcra.current(word, t)), t), now)
	}
	if err := heir.SetQuota(q, now); err != nil {
		return err
	}
	b.heir.Store(heir)
	return nil
}
