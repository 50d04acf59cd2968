package limitertest

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// testDebt: what is charged beyond what is there has to be earned before the
// next token, up to what a minute earns or to a burst, whichever is more.
func testDebt(t *testing.T, fresh factory) {
	lim := fresh(t, perSecond(10), 5)
	full := decision(5, yes, 5, 0)
	lim.Charge(0, 0)
	lim.Charge(0, -1)
	lim.Charge(0, math.MinInt64)
	check(t, "charged nothing", lim.Peek(0, 1), full)
	lim.Charge(0, 3)
	check(t, "2 are left", lim.Peek(0, 1), decision(5, yes, 2, 0))
	check(t, "2 are left, 3 wanted", lim.Peek(0, 3), decision(5, no, 2, 100*ms))
	lim.Charge(0, 7) // 5 owed
	check(t, "in debt", lim.Peek(0, 1), decision(5, no, 0, 600*ms))
	check(t, "nothing is wanted", lim.Peek(0, 0), decision(5, yes, 0, 0))
	check(t, "1 ns early", lim.Peek(600*ms-1, 1), decision(5, no, 0, 1))
	check(t, "on time", lim.Take(600*ms, 1), decision(5, yes, 0, 0))
	lim.GiveBack(1)
	check(t, "given back", lim.Peek(600*ms, 1), decision(5, yes, 1, 0))
	check(t, "full again", lim.Peek(time.Minute, 1), full)

	now := time.Hour
	lim.Charge(now, math.MaxInt64)
	check(t, "a monster", lim.Peek(now, 1), decision(5, no, 0, time.Minute+100*ms))
	lim.Charge(now, math.MaxInt64)
	check(t, "two of them", lim.Peek(now, 1), decision(5, no, 0, time.Minute+100*ms))
	check(t, "paid", lim.Peek(now+time.Minute+100*ms, 1), decision(5, yes, 1, 0))

	slow := fresh(t, hotparam.Rate{N: 1, Per: time.Minute}, 10)
	slow.Charge(0, 10)
	slow.Charge(0, 11)
	check(t, "a debt of one burst", slow.Peek(0, 1), decision(10, no, 0, 11*time.Minute))
}

// testChargesAnyWindow: requests that are let in while there is a token and
// charged afterwards, none of them more than can be owed, cost in any window at
// most burst + rate × w, the last one aside.
func testChargesAnyWindow(t *testing.T, fresh factory) {
	type charge struct {
		at time.Duration
		n  int64
	}
	rapid.Check(t, func(rt *rapid.T) {
		s, rate := draw(rt, append(oddRates, evenRates...))
		lim, ref := fresh(t, rate, s.burst), newIdeal(rate, s.burst)
		var now time.Duration
		var log []charge
		for i := range s.calls() {
			now += s.pause()
			d := lim.Peek(now, 1)
			if d.RetryAfter > 0 && rapid.Bool().Draw(rt, "retry") {
				now += d.RetryAfter
				if d = lim.Peek(now, 1); !d.Allowed {
					rt.Fatalf("call %d: the retry on time was denied: %+v", i, d)
				}
			}
			if d.Allowed {
				n := rapid.Int64Range(0, s.burst).Draw(rt, "cost")
				lim.Charge(now, n)
				log = append(log, charge{now, n})
			}
		}
		for i := range log {
			var sum int64
			for _, c := range log[i:] {
				if w := c.at - log[i].at; !ref.admits(sum, w) {
					rt.Fatalf("%s burst %d: charged %d in a window of %v from %v, and let in another", rate, s.burst, sum, w, log[i].at)
				}
				sum += c.n
			}
		}
	})
}

// testChargeConcurrent: no charge is lost.
func testChargeConcurrent(t *testing.T, fresh factory) {
	const each, burst = 3, 1
	lim := fresh(t, perSecond(hotparam.MaxRate), burst) // a minute of it is 6e8
	together(func(int) {
		for range rounds {
			lim.Charge(time.Hour, each)
		}
	})
	const owed = goroutines*rounds*each - burst
	check(t, "all is owed", lim.Peek(time.Hour, 1), decision(burst, no, 0, (owed+1)*time.Second/hotparam.MaxRate))
}
