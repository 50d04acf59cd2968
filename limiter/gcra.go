package limiter

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// gcra is the generic cell rate algorithm as virtual scheduling (ITU-T I.371,
// annex A). The state of a bucket is one word: the theoretical arrival time,
// the instant at which the bucket is full again if nobody takes anything. A
// bucket whose instant has passed is full however long ago that was, so time
// and GiveBack alike can never fill it beyond its burst, and the zero word is a
// full bucket.
//
// A token costs ⌈Per/N⌉ nanoseconds. Rounded up, a bucket never admits more
// than its rate; it falls short by less than a nanosecond a token, which is 1%
// at [hotparam.MaxRate] and 1 in 10⁶ at 1,000/s.
type gcra struct {
	interval int64 // ns in which one token is earned
	burst    int64 // tokens in a full bucket
	fill     int64 // ns in which an empty bucket fills: interval × burst
	debt     int64 // ns in which the deepest debt is paid
}

// With these bounds no sum or difference of instants leaves an int64.
const (
	maxNow  = 1 << 62 // ns, 146 years
	maxFill = 1 << 61 // ns, 73 years
	maxDebt = 1 << 60 // ns
)

// minDebt is how much time's tokens a charge may leave owed, and a burst if that
// is more.
const minDebt = int64(time.Minute)

// maxBack is how far the clock may go back and still be the same clock. Within
// it the bucket waits until the clock has caught up, and refills nothing twice:
// that covers a goroutine that was held up between reading the clock and
// taking. Beyond it, and the deepest debt, the clock was reset, and waiting could
// mean for ever: the bucket then starts anew, empty.
const maxBack = int64(time.Minute)

// gone is the word of a bucket that its table has dropped: look it up again.
const gone = -1

func newGCRA(rate hotparam.Rate, burst int64) (gcra, error) {
	switch {
	case rate.N < 1 || rate.Per <= 0:
		return gcra{}, fmt.Errorf("limiter: rate of %d per %v: both must be positive", rate.N, rate.Per)
	case rate.PerSecond() > hotparam.MaxRate:
		return gcra{}, fmt.Errorf("limiter: rate %s: at most %d per second", rate, hotparam.MaxRate)
	case burst < 1:
		return gcra{}, fmt.Errorf("limiter: burst %d: must be at least 1", burst)
	}
	interval := (int64(rate.Per)-1)/rate.N + 1
	if burst > maxFill/interval {
		return gcra{}, fmt.Errorf("limiter: burst %d at rate %s takes over 73 years to fill: lower the burst to %d or raise the rate",
			burst, rate, maxFill/interval)
	}
	fill := burst * interval
	return gcra{interval: interval, burst: burst, fill: fill, debt: min(max(fill, minDebt), maxDebt)}, nil
}

// instant is now as the words tell time.
func instant(now time.Duration) int64 { return min(max(int64(now), 0), maxNow) }

// current is the word as it stands at t: itself, or an empty bucket's when it
// comes from before a reset of the clock.
func (g *gcra) current(word, t int64) int64 {
	if word-t > g.fill+g.debt+maxBack {
		return t + g.fill
	}
	return word
}

// verdict is what step finds, in words that stay in registers: a Decision is made
// of it once, since each copy of one would have to wait for its bytes.
type verdict struct {
	allowed bool
	free    int64 // ns worth of tokens that remain; below 0 in debt
	wait    int64 // ns until a retry can pass
}

// step is the whole algorithm: from a word to the next one and the verdict.
func (g *gcra) step(word, t, n int64) (int64, verdict) {
	word = g.current(word, t)
	start := max(word, t)
	free := g.fill - (start - t) // below 0 also when t is behind
	switch {
	case n < 0 || n > g.burst:
		return word, verdict{false, free, 0}
	case n == 0:
		return word, verdict{true, free, 0}
	case n*g.interval > free:
		return word, verdict{false, free, n*g.interval - free}
	}
	return start + n*g.interval, verdict{true, free - n*g.interval, 0}
}

func (g *gcra) decision(v verdict) hotparam.Decision {
	reason := hotparam.ReasonLimited
	if v.allowed {
		reason = hotparam.ReasonWithin
	}
	return hotparam.Decision{
		Allowed: v.allowed, Reason: reason, Limit: g.burst, Remaining: max(0, v.free) / g.interval, RetryAfter: time.Duration(v.wait),
	}
}

// take steps the word in place; false when the bucket is gone. It is lock-free:
// whoever loses the swap has lost it to one who made progress, and a denial,
// the common case of a hot bucket, swaps nothing.
func (g *gcra) take(word *atomic.Int64, t, n int64) (verdict, bool) {
	for {
		old := word.Load()
		if old == gone {
			return verdict{}, false
		}
		next, v := g.step(old, t, n)
		if next == old || word.CompareAndSwap(old, next) {
			return v, true
		}
	}
}

// charge takes n of the word in place, whatever is there; false when the bucket
// is gone. It is lock-free as take is.
func (g *gcra) charge(word *atomic.Int64, t, n int64) bool {
	for {
		old := word.Load()
		if old == gone {
			return false
		}
		if next := g.charged(old, t, n); next == old || word.CompareAndSwap(old, next) {
			return true
		}
	}
}

// charged is the word after n more were taken at t.
func (g *gcra) charged(word, t, n int64) int64 {
	word = g.current(word, t)
	start := max(word, t)
	end := max(t+g.fill+g.debt, start) // it may be behind start when the clock is
	if n > (end-start)/g.interval {
		return end // the rest is forgiven
	}
	return start + n*g.interval
}

// peek is the decision on n, with the tokens that are there before.
func (g *gcra) peek(word, t, n int64) hotparam.Decision {
	_, v := g.step(word, t, n)
	if v.allowed {
		v.free += n * g.interval
	}
	return g.decision(v)
}

// giveBack undoes a take of n. It needs no clock: a word that falls behind it
// is a full bucket.
func (g *gcra) giveBack(word *atomic.Int64, n int64) {
	if n <= 0 {
		return
	}
	back := min(n, g.burst) * g.interval
	for {
		old := word.Load()
		if old <= 0 { // full since ever, or gone
			return
		}
		if word.CompareAndSwap(old, max(0, old-back)) {
			return
		}
	}
}
