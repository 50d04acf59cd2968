package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// drawWindowQuota draws a quota of any algorithm with windows.
func drawWindowQuota(t *rapid.T, a rules.Algorithm) *rules.Quota {
	q := windowQuota(a, rapid.Int64Range(1, 5).Draw(t, "n"), time.Duration(rapid.Int64Range(1, 200).Draw(t, "per"))*time.Second)
	switch a {
	case rules.SlidingBlocks:
		q.Blocks = rapid.IntRange(1, 10).Draw(t, "blocks")
	case rules.FixedWindow:
		if rapid.Bool().Draw(t, "calendar") {
			q.Calendar = rapid.SampledFrom([]rules.Calendar{rules.CalendarSecond, rules.CalendarMinute, rules.CalendarHour}).Draw(t, "period")
			q.Rate.Per = rules.CalendarPeriods[q.Calendar]
		}
	}
	return q
}

// TestWindowsClockBack checks that time stands still if the clock goes back by up to a minute. The
// retry time of a denial then includes the time until the clock has caught up.
func TestWindowsClockBack(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				q := drawWindowQuota(t, algorithm)
				// With a clock that goes back sometimes, everything is as with one that stands
				// still until it has caught up, except for the time by which the clock lags.
				straight, wobbling := newWindowState(t, q, 0), newWindowState(t, q, 0)
				at := time.Duration(rapid.Int64Range(3600, 7200).Draw(t, "start")) * time.Second
				for range rapid.IntRange(1, 40).Draw(t, "asks") {
					at += time.Duration(rapid.Int64Range(0, int64(q.Rate.Per)).Draw(t, "later"))
					ask := Request{
						Kind:   rapid.SampledFrom([]OpKind{Take, Peek, AtMost, Reserve, Charge}).Draw(t, "kind"),
						N:      rapid.Int64Range(0, 6).Draw(t, "n"),
						Within: time.Duration(rapid.Int64Range(0, int64(2*q.Rate.Per)).Draw(t, "within")),
					}
					var lag time.Duration
					wobbling.FreshAfter(at)  // passes it the time
					if ask.Kind != Reserve { // whose delay is longer by the lag
						lag = time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "lag"))
					}
					want, got := straight.Do(at, ask), wobbling.Do(at-lag, ask)
					if want.RetryAfter > 0 {
						want.RetryAfter += lag
					}
					if want.ResetAfter > 0 {
						want.ResetAfter += lag
					}
					if got != want {
						t.Fatalf("%+v at %v - %v:\n got %+v\nwant %+v", ask, at, lag, got, want)
					}
				}
			})
		})
	}
}

// TestWindowsOtherClock checks a leap back of more than a minute. Nothing is granted for it, and
// taken permits are free again no later than without it, counted from the leap.
func TestWindowsOtherClock(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				q := drawWindowQuota(t, algorithm)
				s := newWindowState(t, q, 0)
				at := 1000*time.Hour + time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "start"))
				for range rapid.IntRange(0, 9).Draw(t, "asks") {
					s.Do(at, Request{N: 1})
					at += time.Duration(rapid.Int64Range(0, int64(q.Rate.Per)/4).Draw(t, "later"))
				}
				s.Do(at, Request{Kind: AtMost, N: 9})
				ahead := rapid.Int64Range(0, 3).Draw(t, "reserved")
				for range ahead {
					s.Do(at, Request{Kind: Reserve, N: q.Rate.N, Within: time.Hour * 10})
				}
				at = time.Duration(rapid.Int64Range(0, int64(999*time.Hour)).Draw(t, "back to"))
				r := s.Do(at, Request{N: 1})
				if r.Allowed {
					t.Fatalf("the leap granted a permit: %+v", r)
				}
				if longest := q.Rate.Per*time.Duration(ahead+2) + time.Second; r.RetryAfter > longest || r.ResetAfter > longest+q.Rate.Per {
					t.Fatalf("free in %v, as new in %v, want at most %v: %+v", r.RetryAfter, r.ResetAfter, longest, r)
				}
				if s.Do(at+r.RetryAfter-1, Request{N: 1}).Allowed || !s.Do(at+r.RetryAfter, Request{N: 1}).Allowed {
					t.Fatalf("retry after %v is not true", r.RetryAfter)
				}
			})
		})
	}
}

// TestWindowsAnyArgument checks that no argument panics, overflows or admits too much.
func TestWindowsAnyArgument(t *testing.T) {
	any64 := func(t *rapid.T, name string) int64 {
		return rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 9), rapid.Custom(func(t *rapid.T) int64 {
			return rapid.SampledFrom([]int64{-1 << 63, 1<<63 - 1, 1 << 62, 1 << 61, 1 << 40}).Draw(t, "edge") + rapid.Int64Range(-2, 2).Draw(t, "off")
		})).Draw(t, name)
	}
	for _, algorithm := range windowAlgorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				q := drawWindowQuota(t, algorithm)
				q.CountDenied = rapid.Bool().Draw(t, "count denied")
				if q.Calendar == "" && rapid.Bool().Draw(t, "great") {
					q.Rate = rapid.SampledFrom([]rules.Rate{
						{N: 1, Per: 1 << 61}, {N: 1 << 54, Per: 1 << 61}, {N: 1, Per: 100}, {N: 100_000, Per: 1 << 60}, {N: 3, Per: 24 * time.Hour},
					}).Draw(t, "rate")
					if algorithm == rules.SlidingLog && q.Rate.N > rules.MaxLog {
						q.Rate = rules.Rate{N: rules.MaxLog, Per: 1 << 60}
					}
					q.Burst = q.Rate.N
				}
				s := newWindowState(t, q, time.Duration(any64(t, "made at")))
				for range rapid.IntRange(1, 30).Draw(t, "asks") {
					at := time.Duration(any64(t, "at"))
					ask := Request{
						Kind: OpKind(rapid.IntRange(0, 8).Draw(t, "kind")), N: any64(t, "n"), Keep: any64(t, "keep"),
						Within: time.Duration(any64(t, "within")), Mark: any64(t, "mark"),
					}
					r := s.Do(at, ask)
					if r.Remaining < 0 || r.Remaining > r.Limit || r.RetryAfter < 0 || r.ResetAfter < 0 || r.Delay < 0 || r.Taken < 0 || r.Mark < 0 ||
						r.Allowed != (r.Reason == rules.ReasonWithin) || r.Allowed && r.RetryAfter != 0 || !r.Allowed && r.Taken != 0 {
						t.Fatalf("%+v at %v: %+v", ask, at, r)
					}
					if r.Taken > r.Limit && ask.Kind != Charge || ask.N < 0 && r.Allowed || ask.Kind > Return && ask.N != 0 && r.Allowed {
						t.Fatalf("%+v at %v: %+v", ask, at, r)
					}
					if f := s.FreshAfter(at); f < 0 {
						t.Fatalf("fresh after %v", f)
					}
				}
			})
		})
	}
}

// TestWindowsOwed checks that a debt is bounded, however much is charged.
func TestWindowsOwed(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		s := newWindowState(t, windowQuota(algorithm, 3, 10*time.Second), 0)
		sum := int64(0)
		for range 9 {
			r := s.Do(0, Request{Kind: Charge, N: 1<<63 - 1})
			if sum += r.Taken; !r.Allowed || r.Remaining != 0 {
				t.Errorf("%s: %+v", algorithm, r)
			}
		}
		if sum != 3+maxOwed && sum != maxOwed {
			t.Errorf("%s: %d permits counted", algorithm, sum)
		}
		if r := s.Do(10*time.Second, Request{N: 3}); !r.Allowed {
			t.Errorf("%s: %+v", algorithm, r)
		}
	}
}

// TestWindowsEndOfTime checks that nothing is reserved beyond the end of time.
func TestWindowsEndOfTime(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		s := newWindowState(t, windowQuota(algorithm, 1, 1<<61), 0)
		end := time.Duration(maxNow)
		s.Do(end, Request{N: 1})
		for range 9 {
			if r := s.Do(end, Request{Kind: Reserve, N: 1, Within: 1<<63 - 1}); r.Allowed || r.RetryAfter <= 0 {
				t.Errorf("%s: %+v", algorithm, r)
			}
		}
	}
}

// TestWindowsReserveBounded checks that the number of reservations is bounded.
func TestWindowsReserveBounded(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			s := newWindowState(t, windowQuota(algorithm, 1, time.Second), 0)
			taken := 0
			for range maxReserved + 10 {
				if s.Do(0, Request{Kind: Reserve, N: 1, Within: 1 << 62}).Allowed {
					taken++
				}
			}
			if taken != maxReserved+1 {
				t.Errorf("%d reservations", taken)
			}
			r := s.Do(0, Request{Kind: Reserve, N: 1, Within: 1 << 62})
			if r.RetryAfter != time.Second || !s.Do(time.Second, Request{Kind: Reserve, N: 1, Within: 1 << 62}).Allowed {
				t.Errorf("full: %+v", r)
			}
		})
	}
}
