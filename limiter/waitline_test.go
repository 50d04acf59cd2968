package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// distant is a backend that takes a round trip to reach.
type distant struct {
	limiter.Backend
	trip time.Duration
}

func (d distant) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	time.Sleep(d.trip / 2)
	res, err := d.Backend.Do(ctx, op)
	time.Sleep(d.trip / 2)
	return res, err
}

func newMemory(tb testing.TB) *limiter.Memory {
	tb.Helper()
	m, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// waiting calls more with functions that wait for one permit at 20/s.
func waiting(tb testing.TB, more func(name string, wait func(context.Context) error)) {
	tb.Helper()
	more("Local", limiter.NewLocal(20, 1).Wait)
	for name, q := range map[string]rules.Quota{
		"token bucket": {Rate: rules.Rate{N: 20, Per: time.Second}, Burst: 1},
		"sliding log":  {Rate: rules.Rate{N: 20, Per: time.Second}, Algorithm: rules.SlidingLog},
		"warm-up":      {Rate: rules.Rate{N: 20, Per: time.Second}, Burst: 1, WarmUp: time.Second},
		"fixed window": {Rate: rules.Rate{N: 20, Per: time.Second}, Algorithm: rules.FixedWindow},
		"blocks":       {Rate: rules.Rate{N: 20, Per: time.Second}, Algorithm: rules.SlidingBlocks, Blocks: 10},
		"queue":        {Rate: rules.Rate{N: 20, Per: time.Second}, Burst: 30, Algorithm: rules.LeakyBucket, Shape: true},
		"a lock":       {Rate: rules.Rate{N: 20, Per: time.Second}, Burst: 1, Penalty: time.Millisecond},
	} {
		for where, backend := range map[string]limiter.Backend{
			"in memory": newMemory(tb), "a millisecond away": distant{newMemory(tb), time.Millisecond},
			"70 ms away":           distant{newMemory(tb), 70 * time.Millisecond},
			"without reservations": unreserving{newMemory(tb)},
		} {
			l := newNamed(tb, backend, "x", q)
			more(name+" "+where, func(ctx context.Context) error { return l.Wait(ctx, "k") })
		}
	}
}

// unreserving is a backend that cannot reserve.
type unreserving struct{ limiter.Backend }

func (u unreserving) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	if op.Kind == limiter.Reserve {
		return limiter.Result{}, limiter.ErrUnsupported
	}
	return u.Backend.Do(ctx, op)
}

// served counts the served calls by second.
type served struct {
	start time.Time
	mu    sync.Mutex
	by    []int
}

// wait waits at most 5 s, and leaves when its patience ends.
func (s *served) wait(wait func(context.Context) error, patience time.Duration) error {
	ctx, leave := context.WithTimeout(context.Background(), 5*time.Second)
	defer leave()
	timer := time.AfterFunc(patience, leave)
	defer timer.Stop()
	err := wait(ctx)
	if at := int(time.Since(s.start) / time.Second); err == nil && at < len(s.by) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.by[at]++
	}
	return err
}

// A waiter that gives up leaves its turn to the next. At any time nine tenths of the limit are
// served, however short the waiters' patience.
func TestWaitersGiveUp(t *testing.T) {
	for name, run := range map[string]func(*served, func(context.Context) error){
		"40 clients": func(s *served, wait func(context.Context) error) {
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					for time.Since(s.start) < time.Duration(len(s.by))*time.Second {
						if s.wait(wait, time.Duration(200+20*i)*time.Millisecond) != nil {
							time.Sleep(time.Millisecond)
						}
					}
				})
			}
			all.Wait()
		},
		"a spike": func(s *served, wait func(context.Context) error) {
			var all sync.WaitGroup
			for i := range 22 * len(s.by) {
				n := 1
				if i == 22*5 {
					n += 150
				}
				for j := range n {
					all.Go(func() { s.wait(wait, time.Duration(200+20*((i+j)%40))*time.Millisecond) })
				}
				time.Sleep(time.Second / 22)
			}
			all.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				waiting(t, func(what string, wait func(context.Context) error) {
					s := &served{start: time.Now(), by: make([]int, 20)}
					run(s, wait)
					total := 0
					for _, n := range s.by[2:] {
						total += n
					}
					if total < 18*18 || total > 18*20+20 {
						t.Errorf("%s: served %v by second, want 18 to 20 in each", what, s.by)
					}
					if testing.Verbose() {
						t.Log(what, fmt.Sprint(s.by))
					}
				})
				time.Sleep(time.Second) // for the line's request that is in flight when the last waiter leaves
			})
		})
	}
}

// far returns a limiter at a distance of a millisecond, with 20/s and a burst of 1, and another
// process's view of its key.
func far(t *testing.T) (l, other *limiter.Limiter) {
	m := newMemory(t)
	q := rules.Quota{Rate: rules.Rate{N: 20, Per: time.Second}, Burst: 1}
	return newNamed(t, distant{m, time.Millisecond}, "x", q), newNamed(t, m, "x", q)
}

// However many wait, the line of a remote key holds only the permits that come due during a round
// trip. So many are lost if the process is killed.
func TestLineHoldsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := far(t)
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { l.Wait(ctx, "k") })
		}
		for range 20 {
			time.Sleep(33 * time.Millisecond)
			d, err := other.Peek(t.Context(), "k", 0)
			if err != nil || d.ResetAfter > 150*time.Millisecond {
				t.Errorf("%v ahead is reserved, want at most three permits, one of them due: %v", d.ResetAfter, err)
			}
		}
		leave()
		all.Wait()
		time.Sleep(50 * time.Millisecond)
		if d, err := other.Allow(t.Context(), "k"); err != nil || !d.Allowed {
			t.Errorf("something stays taken: %+v, %v", d, err)
		}
	})
}

// A line whose turn was far ahead moves up when others return earlier reservations.
func TestLineMovesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := far(t)
		var before []limiter.Reservation
		for range 60 {
			r, err := other.Reserve(t.Context(), "k", 1, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, r)
		}
		start := time.Now()
		time.AfterFunc(100*time.Millisecond, func() {
			for i := len(before) - 1; i > 0; i-- {
				before[i].Cancel(context.Background())
			}
		})
		if err := l.Wait(t.Context(), "k"); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("%v after %v, want it served before the 3 s that the others gave back", err, time.Since(start))
		}
	})
}

// A waiter whose turn becomes too late, because others were served first, is refused as soon as
// this is known.
func TestTurnBecomesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := far(t)
		l.Wait(t.Context(), "k")
		go l.Wait(t.Context(), "k")
		time.Sleep(10 * time.Millisecond)
		if err := other.Charge(t.Context(), "k", 60); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		var denied *limiter.DeniedError
		if err := l.Wait(ctx, "k"); !errors.As(err, &denied) || denied.RetryAfter < time.Second || time.Since(start) > 100*time.Millisecond {
			t.Errorf("%v after %v, want it denied for 2 s after 50 ms", err, time.Since(start))
		}
		time.Sleep(10 * time.Second)
	})
}

// An algorithm's panic reaches the waiting callers, not a goroutine of the line.
func TestLineOfAPanickingBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l := newNamed(t, fakeFunc(func(op limiter.Op) (limiter.Result, error) {
			if asked++; asked > 1 && op.Kind == limiter.Reserve {
				panic("bad")
			}
			return limiter.Result{Taken: 1, Decision: rules.Decision{Allowed: true, Delay: time.Second}}, nil
		}), "x", fakeQuota(1, 1))
		go l.Wait(t.Context(), "k")
		synctest.Wait()
		defer func() {
			if r := recover(); r != "bad" {
				t.Errorf("recovered %v", r)
			}
		}()
		l.Wait(t.Context(), "k")
	})
}

// An error of the backend ends the waits that have no reservation.
func TestLineOfABackendThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		asked := 0
		b := &fake{before: func(_ context.Context, ops ...limiter.Op) error {
			if asked++; asked > 2 {
				return away
			}
			return nil
		}}
		l := newNamed(t, b, "x", fakeQuota(1, 1))
		l.Wait(t.Context(), "k")
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if err := l.Wait(t.Context(), "k"); i == 0 && err != nil || i > 0 && !errors.Is(err, away) {
					t.Errorf("waiter %d: %v", i, err)
				}
			})
		}
		start := time.Now()
		all.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("all were told after %v", took)
		}
	})
}

// In a full queue, the places go to waiters in the order of their arrival.
func TestNobodyOvertakesInAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNamed(t, newMemory(t), "x", rules.Quota{Algorithm: rules.LeakyBucket, Rate: perSecond5, Burst: 1, Shape: true})
		var (
			all   sync.WaitGroup
			mu    sync.Mutex
			order []int
		)
		for i := range 40 { // the next ones come just when there is a place
			all.Go(func() {
				if err := l.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			if i%2 == 1 {
				time.Sleep(200 * time.Millisecond)
			} else {
				synctest.Wait()
			}
		}
		all.Wait()
		for i, o := range order {
			if i != o {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

// Permits of a window are used when they are due: a waiter does not take over the place of one that
// wanted fewer, since it would use that place's permits later, when it is served itself.
func TestPlaceOfFewerPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNamed(t, newMemory(t), "x", rules.Quota{Rate: rules.Rate{N: 10, Per: time.Second}, Algorithm: rules.SlidingLog})
		const tick = 100 * time.Millisecond
		start, admitted := time.Now(), make([]int64, 30) // by tick
		admit := func(n int64) {
			if d, err := l.AllowN(t.Context(), "k", n); err == nil && d.Allowed {
				admitted[time.Since(start)/tick] += n
			}
		}
		admit(4)
		time.Sleep(5 * tick)
		admit(6)
		var all sync.WaitGroup
		wait := func(ctx context.Context, n int64) {
			all.Go(func() {
				if l.WaitN(ctx, "k", n) == nil {
					admitted[time.Since(start)/tick] += n
				}
			})
			synctest.Wait()
		}
		first, leave := context.WithCancel(t.Context())
		wait(first, 4)
		wait(t.Context(), 6)
		time.Sleep(tick)
		leave()
		for time.Since(start) < 29*tick {
			synctest.Wait() // a waiter that is due comes first
			admit(1)
			time.Sleep(tick / 10)
		}
		all.Wait()
		for i := range 20 {
			sum := int64(0)
			for _, n := range admitted[i : i+10] {
				sum += n
			}
			if sum > 10 {
				t.Fatalf("%d are admitted in a second: %v", sum, admitted)
			}
		}
	})
}
