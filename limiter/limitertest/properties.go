package limitertest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// Rates whose token costs whole nanoseconds, and rates whose does not.
var (
	evenRates = []hotparam.Rate{
		perSecond(1), perSecond(10), perSecond(200), perSecond(4000), perSecond(hotparam.MaxRate),
		{N: 1, Per: 2 * sec}, {N: 60, Per: time.Minute}, {N: 10, Per: 500 * ms}, {N: 5, Per: time.Hour}, {N: 1, Per: day},
	}
	oddRates = []hotparam.Rate{
		perSecond(3), perSecond(7), perSecond(1999), perSecond(9_999_999),
		{N: 7, Per: time.Minute}, {N: 11, Per: 333 * ms}, {N: 1_000_003, Per: time.Hour},
	}
)

// schedule draws the calls of one run.
type schedule struct {
	*rapid.T
	interval time.Duration
	burst    int64
}

func draw(rt *rapid.T, rates []hotparam.Rate) (schedule, hotparam.Rate) {
	rate := rapid.SampledFrom(rates).Draw(rt, "rate")
	return schedule{rt, rate.Per / time.Duration(rate.N), rapid.Int64Range(1, 12).Draw(rt, "burst")}, rate
}

// pause is a time to the next call: often none, often near a whole token.
func (s schedule) pause() time.Duration {
	near := time.Duration(rapid.Int64Range(0, 3).Draw(s.T, "tokens"))*s.interval + time.Duration(rapid.Int64Range(-1, 1).Draw(s.T, "off"))
	far := time.Duration(rapid.Int64Range(0, 2*s.burst*int64(s.interval)).Draw(s.T, "far"))
	return rapid.SampledFrom([]time.Duration{0, max(0, near), far}).Draw(s.T, "pause")
}

func (s schedule) tokens() int64 {
	return rapid.OneOf(rapid.Just[int64](1), rapid.Int64Range(-1, s.burst+1)).Draw(s.T, "n")
}

func (s schedule) calls() int { return rapid.IntRange(1, 40).Draw(s.T, "calls") }

// testIdeal: where a token costs whole nanoseconds, every field of every
// decision is the ideal bucket's, in debt or not; a denial's retry passes on time and not a
// nanosecond before; and what is given back at once was never taken.
func testIdeal(t *testing.T, fresh factory) {
	rapid.Check(t, func(rt *rapid.T) {
		s, rate := draw(rt, evenRates)
		lim, ref := fresh(t, rate, s.burst), newIdeal(rate, s.burst)
		var now time.Duration
		for i := range s.calls() {
			now += s.pause()
			n := s.tokens()
			if rapid.Bool().Draw(rt, "undo") {
				if lim.Take(now, n).Allowed {
					lim.GiveBack(n)
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "charge") == 0 {
				n := rapid.Int64Range(-1, 3*s.burst).Draw(rt, "charged")
				lim.Charge(now, n)
				ref.charge(now, n)
			}
			peek := lim.Peek(now, n)
			d := ref.take(now, n)
			if peek.Allowed {
				peek.Remaining -= n
			}
			check(rt, fmt.Sprintf("call %d: peek %d at %v", i, n, now), peek, d)
			check(rt, fmt.Sprintf("call %d: take %d at %v", i, n, now), lim.Take(now, n), d)
			if d.RetryAfter > 0 && rapid.Bool().Draw(rt, "retry") {
				now += d.RetryAfter - 1
				check(rt, "1 ns early", lim.Take(now, n), ref.take(now, n))
				now++
				if d := lim.Take(now, n); !d.Allowed {
					rt.Fatalf("call %d: the retry on time was denied: %+v", i, d)
				}
				ref.take(now, n)
			}
		}
	})
}

// testAnyWindow: whatever the rate, no window holds more than burst + rate × w,
// less what is given back within it, soon or late; and a retry passes on time
// and not a nanosecond before.
func testAnyWindow(t *testing.T, fresh factory) {
	type admitted struct {
		at time.Duration
		n  int64 // negative: given back
	}
	rapid.Check(t, func(rt *rapid.T) {
		s, rate := draw(rt, append(oddRates, evenRates...))
		lim, ref := fresh(t, rate, s.burst), newIdeal(rate, s.burst)
		var now time.Duration
		var log []admitted
		var held []int64
		for i := range s.calls() {
			now += s.pause()
			if len(held) > 0 && rapid.Bool().Draw(rt, "give back") {
				lim.GiveBack(held[0])
				log = append(log, admitted{now, -held[0]})
				held = held[1:]
			}
			n := s.tokens()
			d := lim.Take(now, n)
			if d.RetryAfter > 0 {
				if d.Allowed || n > s.burst {
					rt.Fatalf("call %d: take %d at %v: no retry is due: %+v", i, n, now, d)
				}
				now += d.RetryAfter - 1
				check(rt, "1 ns early", lim.Take(now, n), decision(s.burst, false, n-1, 1))
				now++
				if d = lim.Take(now, n); !d.Allowed {
					rt.Fatalf("call %d: the retry on time was denied: %+v", i, d)
				}
			}
			if d.Allowed {
				log = append(log, admitted{now, n})
				held = append(held, n)
			}
		}
		for i := range log {
			var sum int64
			for _, a := range log[i:] {
				sum += a.n
				if w := a.at - log[i].at; !ref.admits(sum, w) {
					rt.Fatalf("%s burst %d: %d admitted in a window of %v from %v", rate, s.burst, sum, w, log[i].at)
				}
			}
		}
	})
}

// testClockBack: a clock that jumps back and forth within a minute refills for
// no span of time twice, and a retry on time always passes.
func testClockBack(t *testing.T, fresh factory) {
	rapid.Check(t, func(rt *rapid.T) {
		s, rate := draw(rt, append(oddRates, evenRates...))
		lim, ref := fresh(t, rate, s.burst), newIdeal(rate, s.burst)
		const start = time.Hour
		latest, sum := start, int64(0)
		for i := range s.calls() {
			now := latest + s.pause() - time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(rt, "back"))
			now = max(now, start)
			n := s.tokens()
			d := lim.Take(now, n)
			if d.RetryAfter > 0 && rapid.Bool().Draw(rt, "retry") {
				now += d.RetryAfter
				if d = lim.Take(now, n); !d.Allowed {
					rt.Fatalf("call %d: the retry on time was denied: %+v", i, d)
				}
			}
			latest = max(latest, now)
			if d.Allowed {
				sum += n
			}
			if !ref.admits(sum, latest-start) {
				rt.Fatalf("%s burst %d: %d admitted in %v", rate, s.burst, sum, latest-start)
			}
		}
	})
}
