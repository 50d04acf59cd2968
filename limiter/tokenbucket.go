package limiter

import (
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// TokenBucket limits one thing to a rate. It is safe for concurrent use,
// lock-free, and allocates nothing once made.
//
// The now of its methods is the monotonic time since some fixed instant, the
// same one for all calls, such as time.Since(start); from 0 to 146 years, what
// lies beyond counts as the nearest of them. A clock that goes back by up to a
// minute refills nothing twice; one that goes back by more than that and the
// deepest debt (see [TokenBucket.Charge]) is taken for a new clock, on which the
// bucket starts empty.
type TokenBucket struct {
	gcra
	word atomic.Int64
}

// NewTokenBucket makes a full bucket of burst tokens that earns rate.N tokens
// in each rate.Per. It fails for a rate that is not positive or above
// [hotparam.MaxRate], for a burst below 1, and for a bucket that would take
// over 73 years to fill.
func NewTokenBucket(rate hotparam.Rate, burst int64) (*TokenBucket, error) {
	g, err := newGCRA(rate, burst)
	if err != nil {
		return nil, err
	}
	return &TokenBucket{gcra: g}, nil
}

// Take takes n tokens if there are as many, else none. The package's doc tells
// how to read the decision.
func (b *TokenBucket) Take(now time.Duration, n int64) hotparam.Decision {
	v, _ := b.take(&b.word, instant(now), n)
	return b.decision(v)
}

// Peek is the decision that Take would give for n, but takes nothing: Remaining
// is what the bucket holds.
func (b *TokenBucket) Peek(now time.Duration, n int64) hotparam.Decision {
	return b.peek(b.word.Load(), instant(now), n)
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
	if n > 0 {
		b.charge(&b.word, instant(now), n)
	}
}

// GiveBack returns n tokens that one Take has just taken, for a request that
// then did not happen. The bucket never holds more than its burst.
func (b *TokenBucket) GiveBack(n int64) { b.giveBack(&b.word, n) }

// TimeToFull is how long until the bucket is full if nobody takes a token: from
// then on it is as good as a new one. 0 when it is full.
func (b *TokenBucket) TimeToFull(now time.Duration) time.Duration {
	t := instant(now)
	return time.Duration(max(0, b.current(b.word.Load(), t)-t))
}
