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
	at    atomic.Pointer[cell]
	mu    sync.Mutex // held while the quota is changed
	first cell
	_     [32]byte // two cache lines of its own: 128 bytes
}

// cell is a bucket under one quota. Another quota means another cell: so whoever
// has read the arithmetic has read the word that goes with it.
type cell struct {
	gcra
	word atomic.Int64
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
func newBucketed(q *hotparam.Quota) (*TokenBucket, error) {
	b := &TokenBucket{}
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
// at t.
func (b *TokenBucket) settled(t int64) *cell {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.at.Load()
	c.word.CompareAndSwap(unborn, c.gcra.first(0, t))
	return c
}

// Take takes n tokens if there are as many, else none. The package's doc tells
// how to read the decision.
func (b *TokenBucket) Take(now time.Duration, n int64) hotparam.Decision {
	c, t := b.at.Load(), instant(now)
	v, ok := c.take(&c.word, t, n)
	for !ok {
		c = b.settled(t)
		v, ok = c.take(&c.word, t, n)
	}
	return c.decision(v)
}

// Do does what is asked at now.
func (b *TokenBucket) Do(now time.Duration, ask Ask) Result {
	t := instant(now)
	ask.clamp()
	if ask.Kind == Forget {
		b.forget(t)
		ask = Ask{Kind: Peek}
	}
	for c := b.at.Load(); ; c = b.settled(t) {
		if r, ok := c.do(&c.word, t, &ask); ok {
			return r
		}
	}
}

// forget makes the bucket as new.
func (b *TokenBucket) forget(t int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.at.Load()
	c.word.Store(c.gcra.first(0, t))
}

// Peek is the decision that Take would give for n, but takes nothing: Remaining
// is what the bucket holds.
func (b *TokenBucket) Peek(now time.Duration, n int64) hotparam.Decision {
	c, t := b.at.Load(), instant(now)
	word := c.word.Load()
	for word < 0 {
		c = b.settled(t)
		word = c.word.Load()
	}
	return c.peek(word, t, n)
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
	for c := b.at.Load(); !c.charge(&c.word, t, n); {
		c = b.settled(t)
	}
}

// GiveBack returns n tokens that one Take has just taken, for a request that
// then did not happen. The bucket never holds more than its burst.
func (b *TokenBucket) GiveBack(n int64) {
	for c := b.at.Load(); !c.giveBack(&c.word, n); {
		c = b.settled(0)
	}
}

// TimeToFull is how long until the bucket is full if nobody takes a token: from
// then on it is as good as a new one. 0 when it is full.
func (b *TokenBucket) TimeToFull(now time.Duration) time.Duration {
	return b.Peek(now, 0).ResetAfter
}

// FreshAfter is TimeToFull.
func (b *TokenBucket) FreshAfter(now time.Duration) time.Duration { return b.TimeToFull(now) }

// SetQuota goes on with another quota at now: as many tokens are missing as before,
// if there is room for as many. It fails, and changes nothing, for a quota that is
// not valid or is not a bucket's of this kind; of one that only differs it makes what
// [NewBucket] would.
func (b *TokenBucket) SetQuota(q *hotparam.Quota, now time.Duration) error {
	next := &cell{}
	if err := next.inherit(q); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.at.Load()
	switch {
	case next.leaky != c.leaky:
		return errOtherKind(q)
	case next.same(&c.gcra):
		return nil
	}
	t := instant(now)
	next.ahead.Store(c.ahead.Load())
	if word := c.word.Swap(gone); word == unborn {
		next.word.Store(next.gcra.first(0, t))
	} else {
		next.word.Store(next.adapted(&c.gcra, c.current(word, t), t))
	}
	b.at.Store(next)
	return nil
}
