package limitertest

import (
	"math/big"
	"time"

	"github.com/hotparam/hotparam"
)

// idealBucket is the token bucket as the textbook has it, in exact fractions: each
// token counted, refilled before each use. Below 0 it is in debt, for what was
// charged or reserved. A leaky bucket is the same thing with its places for tokens;
// one that shapes has what it admits wait until the bucket is empty, which is this
// one full.
type idealBucket struct {
	rate   *big.Rat // tokens per nanosecond
	burst  int64
	shape  bool
	tick   time.Duration
	tokens *big.Rat
	last   time.Duration
}

func newIdealBucket(q *hotparam.Quota, tick time.Duration) *idealBucket {
	return &idealBucket{
		rate:   big.NewRat(q.Rate.N, int64(q.Rate.Per)),
		burst:  q.Burst,
		shape:  q.Shape,
		tick:   tick,
		tokens: big.NewRat(q.Burst-q.Missing, 1),
		last:   -1,
	}
}

func (b *idealBucket) refill(now time.Duration) {
	if b.last >= 0 { // a new bucket has earned nothing
		earned := new(big.Rat).Mul(b.rate, big.NewRat(int64(now-b.last), 1))
		b.tokens = least(earned.Add(earned, b.tokens), big.NewRat(b.burst, 1))
	}
	b.last = now
}

func (b *idealBucket) left(now time.Duration) int64 {
	b.refill(now)
	return max(0, floor(b.tokens))
}

func (b *idealBucket) wait(now time.Duration, n int64) time.Duration {
	b.refill(now)
	missing := new(big.Rat).Sub(big.NewRat(n, 1), b.tokens)
	return ceilTick(most(new(big.Rat), missing.Quo(missing, b.rate)), b.tick)
}

func (b *idealBucket) delay(now time.Duration) time.Duration {
	if !b.shape {
		return 0
	}
	return b.reset(now)
}

func (b *idealBucket) take(now, _ time.Duration, n int64) int64 {
	b.refill(now)
	b.tokens = new(big.Rat).Sub(b.tokens, big.NewRat(n, 1))
	return 0
}

// charge owes at most what a minute earns, or a burst.
func (b *idealBucket) charge(now time.Duration, n int64) (int64, int64) {
	b.refill(now)
	before := b.tokens
	minute := new(big.Rat).Mul(b.rate, big.NewRat(int64(time.Minute), 1))
	deepest := new(big.Rat).Neg(most(minute, big.NewRat(b.burst, 1)))
	b.tokens = least(before, most(deepest, new(big.Rat).Sub(before, big.NewRat(n, 1))))
	return floor(new(big.Rat).Sub(before, b.tokens)), 0
}

func (b *idealBucket) giveBack(now time.Duration, _, n int64) {
	b.refill(now)
	b.tokens = least(new(big.Rat).Add(b.tokens, big.NewRat(n, 1)), big.NewRat(b.burst, 1))
}

func (b *idealBucket) reset(now time.Duration) time.Duration { return b.wait(now, b.burst) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }

// ceilTick is so many nanoseconds, rounded up to whole ticks.
func ceilTick(ns *big.Rat, tick time.Duration) time.Duration {
	return time.Duration(ceil(new(big.Rat).Quo(ns, big.NewRat(int64(tick), 1)))) * tick
}

// ceilTo is d/n, rounded up to whole ticks.
func ceilTo(d time.Duration, n int64, tick time.Duration) time.Duration {
	return ceilTick(big.NewRat(int64(d), n), tick)
}
