package limiter_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

var perSecond5 = rules.Rate{N: 5, Per: time.Second}

func newBucket(t testing.TB, rate rules.Rate, burst int64) *limiter.TokenBucket {
	t.Helper()
	b, err := limiter.NewTokenBucket(rate, burst)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNewBucketErrors(t *testing.T) {
	for _, c := range []struct {
		rate  rules.Rate
		burst int64
		want  string // in the error; empty if valid
	}{
		{rules.Rate{}, 1, "rate is missing"},
		{rules.Rate{N: 0, Per: time.Second}, 1, "rate"},
		{rules.Rate{N: -1, Per: time.Second}, 1, "rate"},
		{rules.Rate{N: 1, Per: -1}, 1, "rate"},
		{rules.Rate{N: rules.MaxRate, Per: time.Second}, 1, ""},
		{rules.Rate{N: rules.MaxRate + 1, Per: time.Second}, 1, "rate"},
		{rules.Rate{N: math.MaxInt64, Per: 1}, 1, "rate"},
		{perSecond5, 0, "burst 0"},
		{perSecond5, -2, "burst -2"},
		{rules.Rate{N: 1, Per: 24 * time.Hour}, 26_687, ""},
		{rules.Rate{N: 1, Per: 24 * time.Hour}, 1_000_000, "takes over 73 years to fill"},
		{rules.Rate{N: 1, Per: math.MaxInt64}, 1, "takes over 73 years to fill"},
		{perSecond5, math.MaxInt64, "takes over 73 years to fill"},
	} {
		_, err := limiter.NewTokenBucket(c.rate, c.burst)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v burst %d: %v", c.rate, c.burst, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v burst %d: error %v, want %q in it", c.rate, c.burst, err, c.want)
		}
	}
}

func TestPeekAndTimeToFull(t *testing.T) {
	const ms = time.Millisecond
	b := newBucket(t, perSecond5, 5)
	for i, s := range []struct {
		at        time.Duration
		take      int64
		remaining int64
		full      time.Duration
	}{
		{at: 0, take: 0, remaining: 5, full: 0},
		{at: 0, take: 2, remaining: 3, full: 400 * ms},
		{at: 100 * ms, take: 0, remaining: 3, full: 300 * ms},
		{at: 200 * ms, take: 4, remaining: 0, full: 1000 * ms},
		{at: 1199 * ms, take: 0, remaining: 4, full: 1 * ms},
		{at: 1200 * ms, take: 0, remaining: 5, full: 0},
		{at: time.Hour, take: 5, remaining: 0, full: 1000 * ms},
		{at: 0, take: 0, remaining: 0, full: 1000 * ms}, // the clock was reset: empty
	} {
		if d := b.Take(s.at, s.take); !d.Allowed {
			t.Fatalf("step %d: %+v", i, d)
		}
		for range 2 { // neither changes anything
			if d := b.Peek(s.at, 0); !d.Allowed || d.Remaining != s.remaining || d.Limit != 5 {
				t.Errorf("step %d: peek %+v, want %d remaining", i, d, s.remaining)
			}
			if full := b.TimeToFull(s.at); full != s.full {
				t.Errorf("step %d: full in %v, want %v", i, full, s.full)
			}
		}
	}
}

// No sum overflows, and decisions stay within their bounds, for any arguments.
func TestTokenBucketOverflow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		interval := rapid.Int64Range(100, 1<<61).Draw(rt, "interval")
		burst := rapid.Int64Range(1, 1<<61/interval).Draw(rt, "burst")
		b := newBucket(t, rules.Rate{N: 1, Per: time.Duration(interval)}, burst)
		// The allowance for a clock that went back and for a debt.
		slack := time.Minute + time.Duration(max(int64(time.Minute), burst*interval))
		extremes := []int64{math.MinInt64, -1, 0, 1, 1 << 61, 1<<62 - 1, 1 << 62, 1<<62 + 1, math.MaxInt64}
		anyInt := rapid.OneOf(rapid.Int64(), rapid.SampledFrom(extremes))
		for range rapid.IntRange(1, 20).Draw(rt, "calls") {
			now := time.Duration(anyInt.Draw(rt, "now"))
			n := rapid.OneOf(anyInt, rapid.Int64Range(0, burst)).Draw(rt, "n")
			b.Charge(time.Duration(anyInt.Draw(rt, "charged at")), anyInt.Draw(rt, "charge"))
			if d := b.Peek(now, n); d.Remaining < 0 || d.Remaining > burst || d.RetryAfter < 0 {
				rt.Fatalf("peek %d at %d: %+v", n, now, d)
			}
			d := b.Take(now, n)
			if d.Remaining < 0 || d.Remaining > burst || d.Limit != burst {
				rt.Fatalf("take %d at %d: %+v", n, now, d)
			}
			switch possible := n >= 0 && n <= burst; {
			case d.Allowed && (!possible || d.RetryAfter != 0):
				rt.Fatalf("take %d at %d: %+v", n, now, d)
			case !d.Allowed && possible && (d.RetryAfter <= 0 || int64(d.RetryAfter-slack) > n*interval):
				rt.Fatalf("take %d at %d: %+v", n, now, d)
			case !possible && d.RetryAfter != 0:
				rt.Fatalf("take %d at %d: %+v", n, now, d)
			}
			if full := b.TimeToFull(now); full < 0 || int64(full-slack) > burst*interval {
				rt.Fatalf("full in %d at %d", full, now)
			}
			b.Do(now, limiter.Request{Kind: limiter.Return, N: anyInt.Draw(rt, "back")})
		}
	})
}

// The suite's concurrent cases are short for a bucket that needs only 20 ns a call. This test is
// long enough for its swaps to collide.
func TestTokenBucketContended(t *testing.T) {
	const goroutines, calls, burst = 4, 100_000, 1 << 30
	b := newBucket(t, perSecond5, burst)
	var all sync.WaitGroup
	start := make(chan struct{})
	for range goroutines {
		all.Go(func() {
			<-start
			for range calls {
				b.Take(0, 3)
				b.Do(0, limiter.Request{Kind: limiter.Return, N: 2})
			}
		})
	}
	close(start)
	all.Wait()
	if got, want := b.Peek(0, 0).Remaining, int64(burst-goroutines*calls); got != want {
		t.Errorf("%d tokens remain, want %d", got, want)
	}
}

func TestTokenBucketAllocs(t *testing.T) {
	b := newBucket(t, perSecond5, 5)
	var now time.Duration
	if n := testing.AllocsPerRun(100, func() {
		now += 100 * time.Millisecond
		b.Take(now, 2)
		b.Peek(now, 1)
		b.Charge(now, 3)
		b.Do(now, limiter.Request{Kind: limiter.Return, N: 1})
		b.TimeToFull(now)
	}); n != 0 {
		t.Errorf("%v allocations per run, want none", n)
	}
}

// A game gives 5 points of stamina and restores one every 6 minutes. A match costs 2.
func ExampleNewBucket() {
	stamina, err := limiter.NewBucket(&rules.Quota{Rate: rules.Rate{N: 1, Per: 6 * time.Minute}, Burst: 5}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, now := range []time.Duration{0, time.Minute, 2 * time.Minute, 6 * time.Minute} {
		if d := stamina.Do(now, limiter.Request{N: 2}); d.Allowed {
			fmt.Printf("%v: play, %d left\n", now, d.Remaining)
		} else {
			fmt.Printf("%v: rest for %v\n", now, d.RetryAfter)
		}
	}
	// Output:
	// 0s: play, 3 left
	// 1m0s: play, 1 left
	// 2m0s: rest for 4m0s
	// 6m0s: play, 0 left
}
