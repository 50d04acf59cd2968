package adaptive_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter/adaptive"
	"github.com/hotparam/hotparam/rules"
)

func newAdaptive(t testing.TB, c adaptive.Config) *adaptive.Limiter {
	t.Helper()
	a, err := adaptive.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAdaptive(t *testing.T) {
	a := newAdaptive(t, adaptive.Config{Initial: 2})
	one, d := a.Acquire(0)
	if want := (rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 2, Remaining: 1}); d != want {
		t.Errorf("the first: %+v, want %+v", d, want)
	}
	two, _ := a.Acquire(0)
	three, d := a.Acquire(0)
	if want := (rules.Decision{Reason: rules.ReasonBusy, Limit: 2, RetryAfter: time.Millisecond}); d != want {
		t.Errorf("the third: %+v, want %+v", d, want)
	}
	three.Done(1, adaptive.Success) // it was not let in
	one.Done(1, adaptive.Success)
	one.Done(1, adaptive.Success) // once is enough
	two.Done(1, adaptive.Ignored)
	if got, want := a.Stats(), (adaptive.Stats{Limit: 2, Admitted: 2, Denied: 1}); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
}

func TestAdaptiveConfig(t *testing.T) {
	for _, c := range []adaptive.Config{
		{Min: -1}, {Max: -1}, {Min: 5, Max: 4}, {Max: rules.MaxConcurrency + 1},
		{Initial: -1}, {Min: 5, Initial: 4}, {Max: 5, Initial: 6},
		{Window: -1}, {Window: time.Microsecond}, {Window: time.Hour},
		{Tolerance: 1}, {Tolerance: -1}, {Tolerance: math.NaN()}, {Tolerance: math.Inf(1)},
		{CPUTarget: -1}, {CPUTarget: 1.1}, {CPUTarget: math.NaN()},
	} {
		if _, err := adaptive.New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	for _, tc := range []struct {
		c    adaptive.Config
		want int
	}{
		{adaptive.Config{}, 20}, {adaptive.Config{Min: 30}, 30},
		{adaptive.Config{Max: 7}, 7}, {adaptive.Config{Min: 5000}, 5000},
	} {
		if got := newAdaptive(t, tc.c).Limit(); got != tc.want {
			t.Errorf("%+v: limit %d, want %d", tc.c, got, tc.want)
		}
	}
}

func TestAdaptiveSetMax(t *testing.T) {
	a := newAdaptive(t, adaptive.Config{Min: 2, Initial: 50})
	for _, tc := range []struct{ most, want int }{{60, 50}, {30, 30}, {40, 30}, {1, 2}, {math.MinInt, 2}, {math.MaxInt, 2}} {
		if a.SetMax(tc.most); a.Limit() != tc.want {
			t.Errorf("SetMax(%d): limit %d, want %d", tc.most, a.Limit(), tc.want)
		}
	}
}

// For any calls, and any steps of the clock, the limit stays within its bounds and the number in
// flight is right.
func TestAdaptiveBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cpu := 0.0
		c := adaptive.Config{
			Min: rapid.IntRange(1, 5).Draw(rt, "min"), Max: rapid.IntRange(5, 50).Draw(rt, "max"),
			Initial: 5, Window: 10 * time.Millisecond, CPU: func() float64 { return cpu },
		}
		a := newAdaptive(t, c)
		now := rapid.SampledFrom([]time.Duration{math.MinInt64, 0, math.MaxInt64, time.Hour}).Draw(rt, "start")
		steps := rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, time.Millisecond, time.Second, -time.Hour, 1 << 61, -1 << 61})
		var inside []adaptive.Admission
		for range rapid.IntRange(1, 20).Draw(rt, "spells") {
			step := steps.Draw(rt, "step")
			stay := rapid.IntRange(0, 60).Draw(rt, "stay")
			outcome := adaptive.Outcome(rapid.IntRange(0, 3).Draw(rt, "outcome"))
			cpu = rapid.SampledFrom([]float64{0, 0.5, 1, 1e300, -1, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(rt, "cpu")
			for range 100 {
				now += step
				m, d := a.Acquire(now)
				if d.Allowed != (len(inside) < a.Limit()) || d.Remaining < 0 || d.RetryAfter < 0 {
					rt.Fatalf("%+v with %d inside, limit %d", d, len(inside), a.Limit())
				}
				if d.Allowed {
					inside = append(inside, m)
				}
				for len(inside) > stay {
					inside[0].Done(now, outcome)
					inside = inside[1:]
				}
				if got := a.Limit(); got < c.Min || got > c.Max || a.Stats().InFlight != len(inside) {
					rt.Fatalf("limit %d, want %d to %d; %d in flight, want %d", got, c.Min, c.Max, a.Stats().InFlight, len(inside))
				}
			}
		}
	})
}

func TestAdaptiveConcurrent(t *testing.T) {
	a := newAdaptive(t, adaptive.Config{Max: 8, Initial: 8, Window: time.Millisecond})
	start := time.Now()
	var inside atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 2000 {
				m, d := a.Acquire(time.Since(start))
				if !d.Allowed {
					continue
				}
				if n := inside.Add(1); n > 8 {
					t.Errorf("%d inside", n)
				}
				inside.Add(-1)
				m.Done(time.Since(start), adaptive.Success)
			}
		})
	}
	wg.Wait()
	if got := a.Stats(); got.InFlight != 0 || got.Admitted+got.Denied != 32_000 {
		t.Errorf("Stats() = %+v", got)
	}
}

func TestAdaptiveAllocations(t *testing.T) {
	a := newAdaptive(t, adaptive.Config{Window: time.Millisecond})
	now := time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() {
		m, _ := a.Acquire(now)
		now += time.Millisecond
		m.Done(now, adaptive.Success)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdaptive(b *testing.B) {
	a := newAdaptive(b, adaptive.Config{})
	start := time.Now()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m, _ := a.Acquire(time.Since(start))
			m.Done(time.Since(start), adaptive.Success)
		}
	})
}
