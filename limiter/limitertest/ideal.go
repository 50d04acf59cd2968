package limitertest

import (
	"math/big"
	"time"

	"github.com/hotparam/hotparam"
)

// ideal is the token bucket as the textbook has it, in exact fractions: each
// token counted, refilled before each use. It is slow and for one goroutine.
type ideal struct {
	rate   *big.Rat // tokens per nanosecond
	burst  int64
	tokens *big.Rat
	last   time.Duration
}

func newIdeal(rate hotparam.Rate, burst int64) *ideal {
	return &ideal{
		rate:   big.NewRat(rate.N, int64(rate.Per)),
		burst:  burst,
		tokens: big.NewRat(burst, 1),
	}
}

func (b *ideal) take(now time.Duration, n int64) hotparam.Decision {
	b.refill(now)
	want := big.NewRat(n, 1)
	switch {
	case n < 0 || n > b.burst:
		return decision(b.burst, false, max(0, floor(b.tokens)), 0)
	case n > 0 && want.Cmp(b.tokens) > 0:
		missing := want.Sub(want, b.tokens)
		return decision(b.burst, false, max(0, floor(b.tokens)), time.Duration(ceil(missing.Quo(missing, b.rate))))
	}
	b.tokens.Sub(b.tokens, want)
	return decision(b.burst, true, max(0, floor(b.tokens)), 0)
}

func (b *ideal) refill(now time.Duration) {
	earned := new(big.Rat).Mul(b.rate, big.NewRat(int64(now-b.last), 1))
	b.tokens = least(earned.Add(earned, b.tokens), big.NewRat(b.burst, 1))
	b.last = now
}

// charge owes at most what a minute earns, or a burst.
func (b *ideal) charge(now time.Duration, n int64) {
	b.refill(now)
	minute := new(big.Rat).Mul(b.rate, big.NewRat(int64(time.Minute), 1))
	deepest := new(big.Rat).Neg(most(minute, big.NewRat(b.burst, 1)))
	b.tokens = most(b.tokens.Sub(b.tokens, big.NewRat(max(0, n), 1)), deepest)
}

// admits tells whether n tokens within a window of w keep to burst + rate × w.
func (b *ideal) admits(n int64, w time.Duration) bool {
	most := new(big.Rat).Mul(b.rate, big.NewRat(int64(w), 1))
	return big.NewRat(n, 1).Cmp(most.Add(most, big.NewRat(b.burst, 1))) <= 0
}

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
