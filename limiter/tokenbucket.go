package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// TokenBucket limits one thing to a rate. It is safe for concurrent use,
// lock-free, and allocates nothing once made. It is a [Bucket].
//
// The now of its methods is the monotonic time since some fixed instant, the
// same one for all calls, such as time.Since(start); from 0 to 146 years, what
// lies beyond counts as the nearest of them. A clock that goes back by up to a
// minute refills nothing twice; one that goes back by more than that and the
// deepest debt (see [TokenBucket.Charge]), or the longest delay of a reservation,
// is taken for a new clock, on which the bucket starts empty.
type TokenBucket struct {
	at     atomic.Pointer[wordCell]
	heir   atomic.Pointer[lockedBucket] // what goes on in its place, with a quota that takes more than a word; nil: it does
	custom map[hotparam.Algorithm]Algorithm
	mu     sync.Mutex // held while the quota is changed, and for a Return
	first  wordCell
	_      [16]byte // two cache lines of its own: 128 bytes
}

// wordCell is a bucket under one quota. Another quota means another one: so whoever
// has read the arithmetic has read the word that goes with it.
type wordCell struct {
	gcra
	cell
}

// NewTokenBucket makes a full bucket of burst tokens that earns rate.N tokens
// in each rate.Per. It fails for a rate that is not positive or above
// [hotparam.MaxRate], for a burst below 1, and for a bucket that would take
// over 73 years to fill.
func NewTokenBucket(rate hotparam.Rate, burst int64) (*TokenBucket, error) {
	b := &TokenBucket{}
	b.at.Store(&b.first)
	if err := b.first.set(rate, burst); err != nil {
		return nil, err
	}
	return b, nil
}

// newBucketed makes a bucket of a quota that bucketed tells to be one.
func newBucketed(q *hotparam.Quota, custom map[hotparam.Algorithm]Algorithm) (*TokenBucket, error) {
	b := &TokenBucket{custom: custom}
	b.at.Store(&b.first)
	if err := b.first.setQuota(q); err != nil {
		return nil, err
	}
	if b.first.missing > 0 {
		b.first.word.Store(unborn)
	}
	return b, nil
}

// settled is the cell once a change of the quota is over; one that is unborn starts
// at t. It is nil where another goes on in its place.
func (b *TokenBucket) settled(t int64) *wordCell {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(t)
}

// current is settled for who holds the lock.
func (b *TokenBucket) current(t int64) *wordCell {
	if b.heir.Load() != nil {
		return nil
	}
	c := b.at.Load()
	c.word.CompareAndSwap(unborn, c.gcra.first(0, t))
	return c
}

// Take takes n tokens if there are as many, else none. The package's doc tells
// how to read the decision.
func (b *TokenBucket) Take(now time.Duration, n int64) hotparam.Decision {
	c, t := b.at.Load(), instant(now)
	v, ok := c.take(&c.cell, t, n)
	for !ok {
		if c = b.settled(t); c == nil {
			return b.heir.Load().Do(now, Ask{N: n}).Decision
		}
		v, ok = c.take(&c.cell, t, n)
	}
	return c.decision(v)
}

// Do does what is asked at now.
func (b *TokenBucket) Do(now time.Duration, ask Ask) Result {
	t := instant(now)
	if ask.Kind == Forget || ask.Kind == Return && ask.N >= 0 {
		return b.rewind(now, &ask)
	}
	ask.clamp()
	for c := b.at.Load(); c != nil; c = b.settled(t) {
		if r, ok := c.do(&c.cell, t, &ask); ok {
			return r
		}
	}
	return b.heir.Load().Do(now, ask)
}

// rewind does a Forget or a Return, one after the other.
func (b *TokenBucket) rewind(now time.Duration, ask *Ask) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := instant(now)
	c := b.current(t)
	if c == nil {
		return b.heir.Load().Do(now, *ask)
	}
	if ask.Kind == Forget {
		c.rest.Store(&cellRest{born: t})
		c.word.Store(c.gcra.first(0, t))
		r, _ := c.do(&c.cell, t, &Ask{Kind: Peek})
		return r
	}
	r, _ := c.giveBack(&c.cell, t, ask) // not gone: that needs our lock
	return r
}

// Peek is the decision that Take would give for n, but takes nothing: Remaining
// is what the bucket holds.
func (b *TokenBucket) Peek(now time.Duration, n int64) hotparam.Decision {
	t := instant(now)
	for c := b.at.Load(); c != nil; c = b.settled(t) {
		if word := c.word.Load(); word >= 0 {
			return c.peek(word, t, n)
		}
	}
	return b.heir.Load().Do(now, Ask{Kind: Peek, N: n}).Decision
}

// Charge takes n tokens, whether there are as many or not: it is for a cost that
// is known only when it has been incurred. What is missing is owed, and Take
// denies until it has been earned. More than the tokens of a minute, or a burst
// if that is more, is never owed: beyond it a charge is forgiven, so that no
// single cost locks anybody out for long. An n below 1 charges nothing.
//
// If requests are let in by Peek(now, 1) and charged what they cost, then in any
// window of length w the charges of all but the last of them add up to at most
// burst + rate × w, provided that one is charged before the next is let in, and
// nothing is forgiven.
func (b *TokenBucket) Charge(now time.Duration, n int64) {
	if n < 1 {
		return
	}
	t := instant(now)
	for c := b.at.Load(); c != nil; c = b.settled(t) {
		if c.charge(&c.cell, t, n) {
			return
		}
	}
	b.heir.Load().Do(now, Ask{Kind: Charge, N: n})
}

// TimeToFull is how long until the bucket is full if nobody takes a token: from
// then on it is as good as a new one. 0 when it is full.
func (b *TokenBucket) TimeToFull(now time.Duration) time.Duration {
	if heir := b.heir.Load(); heir != nil {
		return heir.FreshAfter(now)
	}
	return b.Peek(now, 0).ResetAfter
}

// FreshAfter is TimeToFull.
func (b *TokenBucket) FreshAfter(now time.Duration) time.Duration { return b.TimeToFull(now) }

// SetQuota goes on with another quota at now, as [Bucket] tells. Where that takes more
// than one word the bucket has a lock from then on.
func (b *TokenBucket) SetQuota(q *hotparam.Quota, now time.Duration) error {
	if _, err := NewAlgorithm(q, b.custom); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if heir := b.heir.Load(); heir != nil {
		return heir.SetQuota(q, now)
	}
	c := b.at.Load()
	next := &wordCell{}
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
		next.cell.store(&l)
	}
	next.inherit(&c.gcra)
	b.at.Store(next)
	return nil
}

// bequeath has a bucket with a lock go on with what the cell held. The caller holds the
// lock.
func (b *TokenBucket) bequeath(c *wordCell, word int64, q *hotparam.Quota, now time.Duration) error {
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
