package limitertest

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// TestAlgorithm checks properties of any algorithm, whatever it counts, on random schedules for
// each of the quotas. For the built-in algorithms [TestBackend] compares exact results.
func TestAlgorithm(t *testing.T, a limiter.Algorithm, quotas ...rules.Quota) {
	for _, q := range quotas {
		q = q.WithDefaults()
		if err := q.Validate(); err != nil {
			t.Fatal(err)
		}
		t.Run(describeQuota(&q), func(t *testing.T) {
			t.Run("what can be", func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) { newStateRun(rt, a, &q).run() })
			})
			t.Run("extremes", func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) { newStateRun(rt, a, &q).extremes() })
			})
			t.Run("a clock that goes back", func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) { newStateRun(rt, a, &q).back() })
			})
		})
	}
}

// stateRun is a schedule of one state.
type stateRun struct {
	schedule
	algorithm limiter.Algorithm
	state     limiter.State
	now       time.Duration
}

func newStateRun(rt *rapid.T, a limiter.Algorithm, q *rules.Quota) *stateRun {
	kinds := []limiter.OpKind{limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Charge}
	s := schedule{T: rt, q: q, kinds: kinds, tick: 1, unit: max(1, q.Rate.Per/time.Duration(max(1, q.Rate.N)))}
	return &stateRun{schedule: s, algorithm: a, state: a.New(q, epoch), now: epoch}
}

func (r *stateRun) do(ask limiter.Request) limiter.Result {
	r.Helper()
	got := r.state.Do(r.now, ask)
	r.bounded(ask, got)
	return got
}

// run asks at random, and checks each result against the next ones.
func (r *stateRun) run() {
	for range r.askCount() {
		r.now += r.pause()
		r.fresh()
		ask := r.drawAsk()
		before := r.state.Do(r.now, limiter.Request{Kind: limiter.Peek, N: ask.N, Keep: ask.Keep})
		if again := r.state.Do(r.now, limiter.Request{Kind: limiter.Peek, N: ask.N, Keep: ask.Keep}); again != before {
			r.Fatalf("%s: a peek at %v: %s, and again: %s", describeQuota(r.q), r.now-epoch, describeResult(before), describeResult(again))
		}
		got := r.do(ask)
		if ask.Kind == limiter.Take && (got.Allowed != before.Allowed || got.Delay != before.Delay) {
			r.Fatalf("%s: %s at %v: %s, a peek before it: %s", describeQuota(r.q), describeRequest(ask), r.now-epoch, describeResult(got), describeResult(before))
		}
		if got.RetryAfter > 0 && rapid.Bool().Draw(r.T, "retry") {
			r.now += got.RetryAfter
			if b := r.do(ask); !b.Allowed {
				r.Fatalf("%s: %s: denied for %v, and again after that: %s", describeQuota(r.q), describeRequest(ask), got.RetryAfter, describeResult(b))
			}
		}
	}
}

// fresh fails if a state that may be dropped differs from a new one.
func (r *stateRun) fresh() {
	if r.state.FreshAfter(r.now) != 0 {
		return
	}
	anew := r.algorithm.New(r.q, r.now)
	n := rapid.Int64Range(0, max(r.q.Burst, 1)).Draw(r.T, "of a new one")
	peek := limiter.Request{Kind: limiter.Peek, N: n}
	if old, fresh := r.state.Do(r.now, peek), anew.Do(r.now, peek); old.Decision != fresh.Decision {
		r.Fatalf("%s at %v: it may be forgotten, but a peek for %d is %s, of a new one %s", describeQuota(r.q), r.now-epoch, n, describeResult(old), describeResult(fresh))
	}
}

// back sets the clock back by up to a minute, which must not grant permits that were denied.
func (r *stateRun) back() {
	for range r.askCount() {
		r.now += r.pause()
		got := r.do(limiter.Request{N: r.n()})
		if got.Allowed || got.RetryAfter == 0 {
			continue
		}
		d := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(r.T, "back"))
		if r.now-d < epoch {
			continue
		}
		if b := r.state.Do(r.now-d, limiter.Request{Kind: limiter.Peek, N: got.Limit}); b.Allowed {
			r.Fatalf("%s: denied at %v, but all is there %v earlier: %s", describeQuota(r.q), r.now-epoch, d, describeResult(b))
		}
	}
}

// extremes asks for any number: results stay within bounds, and nothing panics.
func (r *stateRun) extremes() {
	number := rapid.OneOf(rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, 1 << 62, math.MaxInt64}), rapid.Int64(), rapid.Int64Range(0, 2*max(r.q.Burst, 1)))
	for range r.askCount() {
		r.now += r.pause()
		kind := rapid.SampledFrom([]limiter.OpKind{limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Charge, limiter.Return}).Draw(r.T, "kind")
		r.do(limiter.Request{
			Kind: kind, N: number.Draw(r.T, "n"), Keep: number.Draw(r.T, "keep"),
			Within: time.Duration(number.Draw(r.T, "within")), Mark: number.Draw(r.T, "mark"),
		})
		if d := r.state.FreshAfter(r.now); d < 0 {
			r.Fatalf("%s: fresh in %v", describeQuota(r.q), d)
		}
	}
}

// bounded fails for an impossible Result.
func (r *stateRun) bounded(ask limiter.Request, got limiter.Result) {
	if bad := impossible(got.Limit, ask, got); bad != "" {
		r.Fatalf("%s at %v: %s mark %d: %s: %s", describeQuota(r.q), r.now-epoch, describeRequest(ask), ask.Mark, bad, describeResult(got))
	}
}
