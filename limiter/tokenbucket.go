package limiter

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// gcra is the generic cell rate algorithm as virtual scheduling (ITU-T I.371, annex A). The
// state of a bucket is one word, the theoretical arrival time: the time when the bucket is full
// again if no tokens are taken. A bucket whose word has passed is full, however long ago that
// was. So neither time nor a Return can fill it beyond its burst, and the zero word is a full
// bucket. A word later than an empty bucket's means that the bucket owes tokens, for charges or
// for reservations, which are thus served in order. The rest that Returns and changes of the
// quota need is in takeline.go.
//
// A leaky bucket is the same upside down: it holds the tokens that were taken from the token
// bucket, and has leaked out when the token bucket is full.
//
// A token costs ⌈Per/N⌉ nanoseconds. Since this is rounded up, a bucket never admits more than
// its rate. It falls short by less than a nanosecond a token, which is 1% at [rules.MaxRate]
// and 1 in 10⁶ at 1,000/s.
type gcra struct {
	interval int64 // ns in which one token is earned
	burst    int64 // tokens in a full bucket
	fill     int64 // ns in which an empty bucket fills: interval × burst
	debt     int64 // ns in which the deepest debt is paid
	missing  int64 // ns worth of tokens that a new bucket lacks
	shape    bool  // admitted requests leave one by one, after a Delay
	leaky    bool  // a leaky bucket, which no other algorithm takes over
}

// Within these bounds no sum or difference of instants overflows an int64.
const (
	maxNow   = 1 << 62 // ns, 146 years
	maxFill  = 1 << 61 // ns, 73 years
	maxDebt  = 1 << 60 // ns
	maxAhead = 1 << 59 // ns, 18 years: the longest wait of a reservation
)

// minDebt is the smallest limit of a bucket's debt: the tokens of this time. A burst that takes
// longer to fill is the limit instead.
const minDebt = int64(time.Minute)

// maxBack is how far the clock may go back and still be the same clock. Within it a state waits
// until the clock has caught up, and earns nothing twice. This also covers a goroutine that was
// suspended between reading the clock and taking. Beyond it the clock was reset, and waiting
// could take forever: see clock.
const maxBack = int64(time.Minute)

// gone is the word of a bucket that is in its state: see lentWord.
const gone = -1

// setRate sets the rate and the burst.
func (g *gcra) setRate(rate rules.Rate, burst int64) error {
	switch {
	case rate.N < 1 || rate.Per <= 0:
		return fmt.Errorf("limiter: rate of %d per %v: both must be positive", rate.N, rate.Per)
	case rate.PerSecond() > rules.MaxRate:
		return fmt.Errorf("limiter: rate %s: at most %d per second", rate, rules.MaxRate)
	case burst < 1:
		return fmt.Errorf("limiter: burst %d: must be at least 1", burst)
	}
	token := rate.Interval()
	if burst > maxFill/token {
		return fmt.Errorf("limiter: burst %d at rate %s takes over 73 years to fill: lower the burst to %d or raise the rate",
			burst, rate, maxFill/token)
	}
	g.interval, g.burst, g.fill = token, burst, burst*token
	g.debt = min(max(g.fill, minDebt), maxDebt)
	return nil
}

// setQuota sets everything from a quota for which bucketed returns true.
func (g *gcra) setQuota(q *rules.Quota) error {
	if err := q.Validate(); err != nil {
		return fmt.Errorf("limiter: %w", err)
	}
	if err := g.setRate(q.Rate, q.Burst); err != nil {
		return err
	}
	g.missing = q.Missing * g.interval
	g.leaky = q.Algorithm == rules.LeakyBucket
	g.shape = q.Shape
	return nil
}

func newGCRA(q *rules.Quota) (*gcra, error) {
	g := &gcra{}
	return g, g.setQuota(q)
}

// bucketed reports whether a quota needs no state but one word, apart from its penalty.
func bucketed(q *rules.Quota) bool {
	a := q.Algorithm
	return q.Burst != rules.Unlimited && q.WarmUp == 0 && !a.Windowed() && !a.Custom()
}

// instant converts now to the time of the words.
func instant(now time.Duration) int64 { return min(max(int64(now), 0), maxNow) }

// first returns the word of a bucket that is new at t.
func (g *gcra) first(t int64) int64 {
	if g.missing == 0 {
		return 0
	}
	return t + g.missing
}

// stepResult is the result of step in words that stay in registers. The Decision is built from it
// once, since each copy of a Decision would have to wait for its stores.
type stepResult struct {
	allowed bool
	free    int64 // ns worth of tokens that remain; below 0 in debt
	wait    int64 // ns until a retry can pass
	delay   int64 // ns until the taken permits may be used
}

// step runs the algorithm. It returns the next word and the result for n permits, with keep to
// be left.
func (g *gcra) step(word, t, n, keep int64) (int64, stepResult) {
	start := max(word, t)
	free := g.fill - (start - t) // below 0 also when t is behind
	switch {
	case n <= 0:
		return word, stepResult{n == 0, free, 0, 0}
	case n > g.burst-keep:
		return word, stepResult{false, free, 0, 0}
	}
	if need := (n + keep) * g.interval; need > free {
		return word, stepResult{false, free, need - free, 0}
	}
	v := stepResult{true, free - n*g.interval, 0, 0}
	if g.shape {
		v.delay = start - t
	}
	return start + n*g.interval, v
}

// execute executes an ask of any kind but Return. It returns the next word, the result, and the
// number of permits taken. ask.Keep and ask.Within are not negative.
func (g *gcra) execute(word, t int64, ask *Request) (next int64, v stepResult, taken int64) {
	n := ask.N
	switch {
	case !ask.valid():
		next, v = g.step(word, t, min(n, -1), 0)
		return next, v, 0
	case ask.Kind == Take:
		next, v = g.step(word, t, n, ask.Keep)
	case ask.Kind == Peek:
		if _, v = g.step(word, t, n, ask.Keep); v.allowed {
			v.free += n * g.interval
		}
		return word, v, 0
	case ask.Kind == AtMost:
		if n > 0 {
			_, v = g.step(word, t, 0, 0)
			n = max(1, min(n, max(0, v.free)/g.interval-ask.Keep))
		}
		next, v = g.step(word, t, n, ask.Keep)
	case ask.Kind == Reserve:
		next, v = g.reserve(word, t, ask)
	default:
		next, n = g.charged(word, t, n)
		v = stepResult{true, g.free(next, t), 0, 0}
	}
	if !v.allowed {
		n = 0
	}
	return next, v, n
}

// free returns the ns worth of tokens that a word leaves.
func (g *gcra) free(word, t int64) int64 { return g.fill - (max(word, t) - t) }

// reserve takes now or in advance. In a bucket the tokens are earned after those of all earlier
// reservations. In a queue they wait for their turn, which must come in time.
func (g *gcra) reserve(word, t int64, ask *Request) (int64, stepResult) {
	within := min(int64(ask.Within), maxAhead) // below 0 if the clock is behind
	next, v := g.step(word, t, ask.N, ask.Keep)
	switch {
	case v.allowed && (v.delay == 0 || v.delay <= within), !v.allowed && v.wait == 0:
		return next, v
	case v.allowed:
		return word, stepResult{false, v.free + ask.N*g.interval, v.delay - within, 0}
	case g.shape:
		v.wait = max(v.wait, g.fill-v.free-within)
	case v.wait > within:
		v.wait -= within
	default:
		return max(next, t) + ask.N*g.interval, stepResult{true, v.free - ask.N*g.interval, 0, v.wait}
	}
	return next, v
}

func (g *gcra) decision(v stepResult) (d rules.Decision) {
	g.decide(v, &d)
	return d
}

// decide sets d, which must be zero.
func (g *gcra) decide(v stepResult, d *rules.Decision) {
	d.Allowed, d.Reason = v.allowed, rules.ReasonLimited
	if v.allowed {
		d.Reason = rules.ReasonWithin
	}
	d.Limit = g.burst
	if v.free >= g.interval { // a division costs more than all the rest
		d.Remaining = v.free / g.interval
	}
	d.RetryAfter, d.ResetAfter, d.Delay = time.Duration(v.wait), time.Duration(g.fill-v.free), time.Duration(v.delay)
}

// charged returns the word after a charge of n at t, and the number charged. The rest is
// forgiven.
func (g *gcra) charged(word, t, n int64) (next, taken int64) {
	if n == 0 {
		return word, 0
	}
	start := max(word, t)
	end := max(t+g.fill+g.debt, start) // the cap bounds the additional debt, and never lowers the word
	if limit := (end - start) / g.interval; n > limit {
		n = limit
	} else {
		end = start + n*g.interval
	}
	return end, n
}
