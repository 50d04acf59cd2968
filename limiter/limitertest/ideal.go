package limitertest

import (
	"math/big"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// idealBucket is the textbook token bucket in exact fractions: tokens are counted, and refilled
// before each use. Below 0 it is in debt for charges or reservations. A leaky bucket is the same
// with places instead of tokens. If it shapes, it delays an admission until it is empty, which
// corresponds to a full token bucket.
//
// Takes form a line and are earned in its order. Only the part of a take that is not earned yet
// can be returned; the takes after it then move up.
type idealBucket struct {
	rate   *big.Rat // tokens per nanosecond
	burst  int64
	shape  bool
	tick   time.Duration
	tokens *big.Rat
	last   time.Duration
	line   []taken // the oldest first
	marks  int64
	// clipped reports whether a part of a charge was forgiven, so that a fraction of a token is
	// owed. A backend that counts whole tokens in its line may then return less of earlier takes.
	clipped bool
}

// taken is the part of a take that is not earned yet.
type taken struct {
	mark   int64
	tokens *big.Rat
}

func newIdealBucket(q *rules.Quota, tick time.Duration) *idealBucket {
	return &idealBucket{
		rate:   big.NewRat(q.Rate.N, int64(q.Rate.Per)),
		burst:  q.Burst,
		shape:  q.Shape,
		tick:   tick,
		tokens: big.NewRat(q.Burst-q.Missing, 1),
		last:   -1,
		line:   []taken{{0, big.NewRat(q.Missing, 1)}},
	}
}

func (b *idealBucket) refill(now time.Duration) {
	if b.last >= 0 { // a new bucket has earned nothing
		earned := new(big.Rat).Mul(b.rate, big.NewRat(int64(now-b.last), 1))
		b.tokens = minRat(new(big.Rat).Add(earned, b.tokens), big.NewRat(b.burst, 1))
		for len(b.line) > 0 && b.line[0].tokens.Cmp(earned) <= 0 {
			earned.Sub(earned, b.line[0].tokens)
			b.line = b.line[1:]
		}
		if len(b.line) > 0 {
			b.line[0].tokens = new(big.Rat).Sub(b.line[0].tokens, earned)
		}
	}
	b.last = now
}

// join adds a take at the end of the line.
func (b *idealBucket) join(n *big.Rat) (mark int64) {
	b.tokens = new(big.Rat).Sub(b.tokens, n)
	b.marks++
	b.line = append(b.line, taken{b.marks, n})
	return b.marks
}

func (b *idealBucket) available(now time.Duration) int64 {
	b.refill(now)
	return max(0, floor(b.tokens))
}

func (b *idealBucket) wait(now time.Duration, n int64) time.Duration {
	b.refill(now)
	missing := new(big.Rat).Sub(big.NewRat(n, 1), b.tokens)
	return ceilTick(maxRat(new(big.Rat), missing.Quo(missing, b.rate)), b.tick)
}

func (b *idealBucket) delay(now time.Duration) time.Duration {
	if !b.shape {
		return 0
	}
	return b.reset(now)
}

func (b *idealBucket) takePermits(now, _ time.Duration, n int64) int64 {
	b.refill(now)
	return b.join(big.NewRat(n, 1))
}

// charge leaves at most a burst, or as much as a minute earns, owed.
func (b *idealBucket) charge(now time.Duration, n int64) (int64, int64) {
	b.refill(now)
	minute := new(big.Rat).Mul(b.rate, big.NewRat(int64(time.Minute), 1))
	room := new(big.Rat).Add(b.tokens, maxRat(minute, big.NewRat(b.burst, 1)))
	owed := maxRat(new(big.Rat), minRat(room, big.NewRat(n, 1)))
	b.clipped = b.clipped || !owed.IsInt()
	return floor(owed), b.join(owed)
}

func (b *idealBucket) giveBack(now time.Duration, mark, n int64) {
	b.refill(now)
	for i := range b.line {
		if x := &b.line[i]; x.mark == mark && mark > 0 {
			back := minRat(x.tokens, big.NewRat(n, 1))
			x.tokens = new(big.Rat).Sub(x.tokens, back)
			b.tokens = new(big.Rat).Add(b.tokens, back)
		}
	}
}

func (b *idealBucket) reset(now time.Duration) time.Duration { return b.wait(now, b.burst) }

func minRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func maxRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }

// ceilTick returns ns rounded up to whole ticks.
func ceilTick(ns *big.Rat, tick time.Duration) time.Duration {
	return time.Duration(ceil(new(big.Rat).Quo(ns, big.NewRat(int64(tick), 1)))) * tick
}

// ceilTo returns d/n rounded up to whole ticks.
func ceilTo(d time.Duration, n int64, tick time.Duration) time.Duration {
	return ceilTick(big.NewRat(int64(d), n), tick)
}
