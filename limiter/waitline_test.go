package limiter_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// distant is a backend a round trip away.
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

// waiting are functions that wait for one permit at 20/s.
func waiting(tb testing.TB, more func(name string, wait func(context.Context) error)) {
	tb.Helper()
	more("Local", limiter.NewLocal(20, 1).Wait)
	for name, q := range map[string]hotparam.Quota{
		"token bucket": {Rate: hotparam.Rate{N: 20, Per: time.Second}, Burst: 1},
		"sliding log":  {Rate: hotparam.Rate{N: 20, Per: time.Second}, Algorithm: hotparam.SlidingLog},
		"warm-up":      {Rate: hotparam.Rate{N: 20, Per: time.Second}, Burst: 1, WarmUp: time.Second},
		"fixed window": {Rate: hotparam.Rate{N: 20, Per: time.Second}, Algorithm: hotparam.FixedWindow},
		"blocks":       {Rate: hotparam.Rate{N: 20, Per: time.Second}, Algorithm: hotparam.SlidingBlocks, Blocks: 10},
		"queue":        {Rate: hotparam.Rate{N: 20, Per: time.Second}, Burst: 30, Algorithm: hotparam.LeakyBucket, Shape: true},
		"a lock":       {Rate: hotparam.Rate{N: 20, Per: time.Second}, Burst: 1, Penalty: time.Millisecond},
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

// served counts those that were served, by second.
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

// Whoever gives up leaves its turn to the next: at any time nine tenths of the limit are served,
// however short the patience of those that wait.
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
			})
		})
	}
}
