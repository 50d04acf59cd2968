package limitertest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
)

// step is one call at an instant, and the decision that must come out. With
// back, tokens are given back first.
type step struct {
	at        time.Duration
	back      int64
	n         int64
	allowed   bool
	remaining int64
	retry     time.Duration
}

const (
	ms  = time.Millisecond
	sec = time.Second
	day = 24 * time.Hour
)

const yes, no = true, false

var instants = []struct {
	name  string
	rate  hotparam.Rate
	burst int64
	steps []step
}{
	{"burst first, then the rate", perSecond(10), 3, []step{
		{at: 0, n: 1, allowed: yes, remaining: 2},
		{at: 0, n: 1, allowed: yes, remaining: 1},
		{at: 0, n: 1, allowed: yes, remaining: 0},
		{at: 0, n: 1, allowed: no, retry: 100 * ms},
		{at: 100*ms - 1, n: 1, allowed: no, retry: 1},
		{at: 100 * ms, n: 1, allowed: yes, remaining: 0},
		{at: 100 * ms, n: 1, allowed: no, retry: 100 * ms},
		{at: 250 * ms, n: 1, allowed: yes, remaining: 0},
		{at: 299 * ms, n: 1, allowed: no, retry: 1 * ms}, // half a token was kept at 250 ms
		{at: 300 * ms, n: 1, allowed: yes, remaining: 0},
	}},
	{"the first instant may be any", perSecond(10), 2, []step{
		{at: 1000 * day, n: 2, allowed: yes, remaining: 0},
		{at: 1000 * day, n: 1, allowed: no, retry: 100 * ms},
		{at: 1000*day + 100*ms, n: 1, allowed: yes, remaining: 0},
	}},
	{"a bucket of one", perSecond(2), 1, []step{
		{at: 0, n: 1, allowed: yes},
		{at: 0, n: 1, allowed: no, retry: 500 * ms},
		{at: 499 * ms, n: 1, allowed: no, retry: 1 * ms},
		{at: 500 * ms, n: 1, allowed: yes},
		{at: 9 * sec, n: 1, allowed: yes},
		{at: 9 * sec, n: 1, allowed: no, retry: 500 * ms},
	}},
	{"several tokens at once", perSecond(10), 10, []step{
		{at: 0, n: 7, allowed: yes, remaining: 3},
		{at: 0, n: 4, allowed: no, remaining: 3, retry: 100 * ms},
		{at: 0, n: 10, allowed: no, remaining: 3, retry: 700 * ms},
		{at: 0, n: 3, allowed: yes, remaining: 0},
		{at: 550 * ms, n: 5, allowed: yes, remaining: 0},
		{at: 550 * ms, n: 1, allowed: no, retry: 50 * ms},
	}},
	{"a denial consumes nothing", perSecond(1), 2, []step{
		{at: 0, n: 2, allowed: yes},
		{at: 1 * sec, n: 2, allowed: no, remaining: 1, retry: 1 * sec},
		{at: 1 * sec, n: 2, allowed: no, remaining: 1, retry: 1 * sec},
		{at: 1500 * ms, n: 2, allowed: no, remaining: 1, retry: 500 * ms},
		{at: 1500 * ms, n: 1, allowed: yes},
		{at: 2 * sec, n: 1, allowed: yes},
	}},
	{"more than the burst never passes", perSecond(10), 5, []step{
		{at: 0, n: 6, allowed: no, remaining: 5},
		{at: 0, n: 5, allowed: yes},
		{at: 0, n: 6, allowed: no},
		{at: time.Hour, n: math.MaxInt64, allowed: no, remaining: 5},
		{at: time.Hour, n: 5, allowed: yes},
	}},
	{"less than nothing never passes", perSecond(10), 5, []step{
		{at: 0, n: 3, allowed: yes, remaining: 2},
		{at: 0, n: -1, allowed: no, remaining: 2},
		{at: 0, n: math.MinInt64, allowed: no, remaining: 2},
		{at: 0, n: 2, allowed: yes},
	}},
	{"none peeks", perSecond(10), 2, []step{
		{at: 0, n: 0, allowed: yes, remaining: 2},
		{at: 0, n: 2, allowed: yes},
		{at: 0, n: 0, allowed: yes},
		{at: 150 * ms, n: 0, allowed: yes, remaining: 1},
		{at: 150 * ms, n: 0, allowed: yes, remaining: 1},
		{at: 200 * ms, n: 2, allowed: yes},
	}},
	{"idle time never overfills", perSecond(10), 5, []step{
		{at: 0, n: 5, allowed: yes},
		{at: time.Hour, n: 3, allowed: yes, remaining: 2},
		{at: time.Hour, n: 3, allowed: no, remaining: 2, retry: 100 * ms},
		{at: 2 * time.Hour, n: 0, allowed: yes, remaining: 5},
	}},
	{"what is given back can be taken again", perSecond(10), 5, []step{
		{at: 0, n: 5, allowed: yes},
		{at: 0, n: 1, allowed: no, retry: 100 * ms},
		{at: 0, back: 2, n: 0, allowed: yes, remaining: 2},
		{at: 0, n: 3, allowed: no, remaining: 2, retry: 100 * ms},
		{at: 50 * ms, back: 3, n: 5, allowed: yes},
	}},
	{"what is given back never overfills", perSecond(10), 5, []step{
		{at: 0, n: 2, allowed: yes, remaining: 3},
		{at: 0, back: 3, n: 0, allowed: yes, remaining: 5},
		{at: 0, n: 5, allowed: yes},
		{at: 0, back: math.MaxInt64, n: 0, allowed: yes, remaining: 5},
		{at: 0, n: 5, allowed: yes},
		{at: 0, n: 1, allowed: no, retry: 100 * ms},
		{at: time.Hour, back: 5, n: 5, allowed: yes},
		{at: time.Hour, n: 1, allowed: no, retry: 100 * ms},
	}},
	{"nothing and less is not given back", perSecond(10), 5, []step{
		{at: 0, n: 5, allowed: yes},
		{at: 0, back: -1, n: 1, allowed: no, retry: 100 * ms},
		{at: 0, back: math.MinInt64, n: 1, allowed: no, retry: 100 * ms},
	}},
	{"60 a minute", hotparam.Rate{N: 60, Per: time.Minute}, 60, []step{
		{at: 0, n: 60, allowed: yes},
		{at: 0, n: 1, allowed: no, retry: 1 * sec},
		{at: 30 * sec, n: 31, allowed: no, remaining: 30, retry: 1 * sec},
		{at: 30 * sec, n: 30, allowed: yes},
	}},
	{"one a day", hotparam.Rate{N: 1, Per: day}, 1000, []step{
		{at: 0, n: 1000, allowed: yes},
		{at: 0, n: 1, allowed: no, retry: day},
		{at: 0, n: 1000, allowed: no, retry: 1000 * day},
		{at: day - 1, n: 1, allowed: no, retry: 1},
		{at: day, n: 1, allowed: yes},
	}},
	{"the highest rate", perSecond(hotparam.MaxRate), 1_000_000, []step{
		{at: 0, n: 1_000_000, allowed: yes},
		{at: 0, n: 1, allowed: no, retry: 100},
		{at: 50 * ms, n: 500_000, allowed: yes},
		{at: 50 * ms, n: 1, allowed: no, retry: 100},
		{at: 50*ms + 1000, n: 10, allowed: yes},
	}},
	{"a rate that does not divide its time", perSecond(3), 3, []step{
		{at: 0, n: 3, allowed: yes},
		{at: 333_333_333, n: 1, allowed: no, retry: 1}, // a third of a second is not over
		{at: 333_333_334, n: 1, allowed: yes},
	}},
	{"a clock that goes back refills nothing twice", perSecond(10), 2, []step{
		{at: 10 * sec, n: 2, allowed: yes},
		{at: 9 * sec, n: 1, allowed: no, retry: 1100 * ms},
		{at: 9900 * ms, n: 1, allowed: no, retry: 200 * ms},
		{at: 10 * sec, n: 1, allowed: no, retry: 100 * ms},
		{at: 10100 * ms, n: 1, allowed: yes},
		{at: 9 * sec, n: 0, allowed: yes},
		{at: 10100 * ms, n: 1, allowed: no, retry: 100 * ms},
		{at: 10200 * ms, n: 1, allowed: yes},
	}},
}

func testInstants(t *testing.T, fresh factory) {
	for _, c := range instants {
		t.Run(c.name, func(t *testing.T) {
			lim := fresh(t, c.rate, c.burst)
			for i, s := range c.steps {
				if s.back != 0 {
					lim.GiveBack(s.back)
				}
				check(t, fmt.Sprintf("step %d: take %d at %v", i, s.n, s.at),
					lim.Take(s.at, s.n), decision(c.burst, s.allowed, s.remaining, s.retry))
			}
		})
	}
}

// testFigures polls for one token at a steady pace, for long: whole-second
// clocks, lost remainders and intervals that round to nothing all show here.
func testFigures(t *testing.T, fresh factory) {
	for _, c := range []struct {
		rate       hotparam.Rate
		burst      int64
		pace, span time.Duration
		want       int64
	}{
		{hotparam.Rate{N: 1, Per: 2 * sec}, 5, 1100 * ms, 1000 * sec, 504}, // the last poll is at 999.9 s, the 505th is due at 1,000
		{perSecond(10), 10, 10 * ms, 100 * sec, 1010},
		{perSecond(10), 10, 100*ms + 1, 100 * sec, 1000}, // slower than the rate: all
		{perSecond(5000), 1, 100 * time.Microsecond, sec, 5001},
		{perSecond(7), 1, ms, 100 * sec, 700}, // due after 142.857 ms, polled at 143
	} {
		t.Run(fmt.Sprintf("%s burst %d each %v", c.rate, c.burst, c.pace), func(t *testing.T) {
			lim := fresh(t, c.rate, c.burst)
			var got int64
			for now := time.Duration(0); now <= c.span; now += c.pace {
				if lim.Take(now, 1).Allowed {
					got++
				}
			}
			if got != c.want {
				t.Errorf("admitted %d in %v, want %d", got, c.span, c.want)
			}
		})
	}
}

// testClockReset: a clock that is set back by an hour neither grants a fresh
// burst nor denies for that hour.
func testClockReset(t *testing.T, fresh factory) {
	lim := fresh(t, perSecond(10), 5)
	check(t, "drain", lim.Take(time.Hour, 5), decision(5, true, 0, 0))
	d := lim.Take(0, 1)
	if d.Allowed {
		t.Fatal("the clock went back, and the bucket has tokens again")
	}
	if most := 100*ms + time.Minute; d.RetryAfter <= 0 || d.RetryAfter > most {
		t.Fatalf("retry after %v, want at most %v", d.RetryAfter, most)
	}
	check(t, "1 ns early", lim.Take(d.RetryAfter-1, 1), decision(5, false, 0, 1))
	check(t, "on time", lim.Take(d.RetryAfter, 1), decision(5, true, 0, 0))
	check(t, "again", lim.Take(d.RetryAfter, 1), decision(5, false, 0, 100*ms))
}
