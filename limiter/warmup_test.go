package limiter

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func newWarmState(t interface{ Fatal(...any) }, q rules.Quota, now time.Duration) *warmState {
	s, ok := newWarmUp(&q, now).(*warmState)
	if !ok {
		t.Fatal("no state")
	}
	return s
}

// This is the example in the comments of Guava's own tests: 2/s, a warm-up of 4 s and a factor of
// 3. Eight permits are stored, and the threshold is at four. From cold, the fifth comes after the
// warm-up and the others at the rate.
func TestWarmUpFromCold(t *testing.T) {
	q := rules.Quota{Rate: rules.Rate{N: 2, Per: time.Second}, Burst: 1, WarmUp: 4 * time.Second}
	now := time.Hour
	s := newWarmState(t, q, now)
	if s.threshold != 4 || s.maxStored != 8 {
		t.Fatalf("threshold %v, most %v", s.threshold, s.maxStored)
	}
	for i, ms := range []int64{1375, 1125, 875, 625, 500, 500, 500, 500, 500, 500} {
		if r := s.Do(now, Request{N: 1}); !r.Allowed {
			t.Fatalf("permit %d at %v: %+v", i, now, r)
		}
		r := s.Do(now, Request{N: 1})
		if want := time.Duration(ms) * time.Millisecond; r.Allowed || r.RetryAfter != want {
			t.Fatalf("after permit %d: %+v, want a retry after %v", i, r, want)
		}
		if early := s.Do(now+r.RetryAfter-1, Request{Kind: Peek, N: 1}); early.Allowed || early.RetryAfter != 1 {
			t.Fatalf("a nanosecond early: %+v", early)
		}
		now += r.RetryAfter
	}
	now += 2 * time.Second // idle for half a warm-up: half of the permits are stored
	if r := s.Do(now, Request{N: 0}); r.ResetAfter != 2*time.Second {
		t.Errorf("%+v", r)
	}
	if d := s.FreshAfter(now + time.Minute); d != 0 {
		t.Errorf("fresh after %v", d)
	}
}

// In any window at most burst + rate × w are admitted, and the numbers in a decision are right.
func TestWarmUpHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := rules.Quota{
			Rate:       rules.Rate{N: rapid.Int64Range(1, 1000).Draw(rt, "n"), Per: rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(rt, "per")},
			Burst:      rapid.Int64Range(1, 20).Draw(rt, "burst"),
			WarmUp:     time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(rt, "warm-up")),
			ColdFactor: rapid.SampledFrom([]float64{0, 1.001, 2, 3, 10, 1000}).Draw(rt, "factor"),
		}
		now := time.Hour
		s := newWarmState(rt, q, now)
		type taken struct {
			at time.Duration
			n  int64
		}
		var log []taken
		for range 50 {
			now += time.Duration(rapid.Int64Range(0, 3*s.interval).Draw(rt, "pause"))
			n := rapid.Int64Range(1, q.Burst).Draw(rt, "n")
			free := s.Do(now, Request{Kind: Peek}).Remaining
			r := s.Do(now, Request{N: n})
			if r.Allowed != (n <= free) {
				rt.Fatalf("take %d of %d: %+v", n, free, r)
			}
			if !r.Allowed && rapid.Bool().Draw(rt, "retry") {
				if early := s.Do(now+r.RetryAfter-1, Request{Kind: Peek, N: n}); early.Allowed {
					rt.Fatalf("take %d a nanosecond before %v: %+v", n, r.RetryAfter, early)
				}
				now += r.RetryAfter
				r = s.Do(now, Request{N: n})
				if !r.Allowed {
					rt.Fatalf("take %d on time: %+v", n, r)
				}
			}
			if r.Allowed {
				log = append(log, taken{now, n})
			}
		}
		for i := range log {
			sum := int64(0)
			for _, l := range log[i:] {
				sum += l.n
				if most := q.Burst + int64(l.at-log[i].at)/s.interval; sum > most {
					rt.Fatalf("%d in %v, at most %d", sum, l.at-log[i].at, most)
				}
			}
		}
	})
}

// A further permit, or a further stored permit, never lowers the cost. Taking all stored permits
// costs the sum of the areas.
func TestWarmUpCost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		length := rapid.Int64Range(1, int64(24*time.Hour)).Draw(rt, "warm-up")
		factor := rapid.Float64Range(1.0001, 1000).Draw(rt, "factor")
		per := rapid.Int64Range(100, int64(time.Hour)).Draw(rt, "per")
		w, err := newWarm(&rules.Quota{Rate: rules.Rate{N: 1, Per: time.Duration(per)}, Burst: 1, WarmUp: time.Duration(length), ColdFactor: factor})
		if err != nil {
			rt.Fatal(err)
		}
		stored := rapid.Float64Range(0, w.maxStored).Draw(rt, "stored")
		n := rapid.Int64Range(0, 1000).Draw(rt, "n")
		cost := w.cost(stored, n)
		if more := w.cost(stored, n+1); more < cost+w.interval {
			rt.Fatalf("%d cost %d, one more %d", n, cost, more)
		}
		if colder := w.cost(min(w.maxStored, stored*1.01), n); colder < cost {
			rt.Fatalf("%d cost %d, when colder %d", n, cost, colder)
		}
		if n <= 1 { // from cold to the threshold takes a warm-up
			all := int64(math.Ceil(w.maxStored))
			extra := float64(w.cost(w.maxStored, all)-all*w.interval) + (w.maxStored-w.threshold)*float64(per)
			if off := math.Abs(extra - float64(length)); off > 1e-9*float64(length)+2 {
				rt.Fatalf("from cold to the threshold: %v, want %v", extra, length)
			}
		}
	})
}
