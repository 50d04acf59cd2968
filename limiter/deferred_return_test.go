package limiter_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// late is a batcher whose answers take their time, drawn anew for each call.
type late struct {
	limiter.Batcher
	mu    sync.Mutex
	delay func() time.Duration
}

func (l *late) wait() {
	l.mu.Lock()
	d := l.delay()
	l.mu.Unlock()
	time.Sleep(d)
}

func (l *late) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	l.wait()
	return l.Batcher.Do(ctx, op)
}

func (l *late) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	l.wait()
	defer l.wait()
	return l.Batcher.DoAll(ctx, ops, results)
}

// Whenever something is given back, before it was told, while it is being told or after,
// in the end just what was kept is taken of the backend; what a window does not get back
// is counted.
func TestDeferredGivesBackProperty(t *testing.T) {
	for _, algorithm := range []rules.Algorithm{rules.TokenBucket, rules.SlidingLog, rules.FixedWindow, rules.SlidingBlocks} {
		t.Run(string(algorithm), func(t *testing.T) {
			var returned, keptBack atomic.Int64
			checkInBubble(t, func(rt *rapid.T) {
				m, err := limiter.NewMemory(limiter.MemoryConfig{Clock: func() time.Duration { return time.Duration(time.Now().UnixNano()) }})
				if err != nil {
					rt.Fatal(err)
				}
				q := rules.Quota{Algorithm: algorithm, Rate: rules.Rate{N: 1000, Per: 10_000 * time.Hour}}.WithDefaults()
				slow := rapid.IntRange(0, 300).Draw(rt, "latency")
				n := 0
				d := newDeferred(t, &late{Batcher: m, delay: func() time.Duration { n++; return time.Duration(n*7919%(slow+1)) * time.Millisecond }}, limiter.DeferredConfig{})
				stop := runInBubble(t, d.Run)
				var (
					taken atomic.Int64
					all   sync.WaitGroup
				)
				for range rapid.IntRange(1, 40).Draw(rt, "requests") {
					take := rapid.Int64Range(1, 5).Draw(rt, "n")
					back := rapid.Int64Range(0, take).Draw(rt, "back")
					start := time.Duration(rapid.IntRange(0, 2000).Draw(rt, "start")) * time.Millisecond
					hold := time.Duration(rapid.SampledFrom([]int{0, 1, 20, 99, 101, 250, 1500}).Draw(rt, "hold")) * time.Millisecond
					all.Go(func() {
						time.Sleep(start)
						res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", take, &q))
						time.Sleep(hold)
						taken.Add(res.Taken)
						if back = min(back, res.Taken); back > 0 {
							op := fakeOp(limiter.Return, "k", 0, &q)
							op.Ask = res.Return()
							op.N = back
							mustDo(t, d, op)
							taken.Add(-back)
							returned.Add(back)
						}
					})
				}
				all.Wait()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				s := d.Stats()
				keptBack.Add(int64(s.Kept))
				if algorithm == rules.TokenBucket && s.Kept > 0 {
					rt.Fatalf("a bucket did not get all back: %+v", s)
				}
				op := fakeOp(limiter.Peek, "k", 0, &q)
				res, err := m.Do(context.Background(), op)
				if err != nil || s.Lost > 0 || res.Limit-res.Remaining != taken.Load()+int64(s.Kept) {
					rt.Fatalf("%d are taken, want %d and %d that were not returned: %v", res.Limit-res.Remaining, taken.Load(), s.Kept, err)
				}
				stop()
			})
			if returned.Load() == 0 || keptBack.Load() > returned.Load()/2 {
				t.Errorf("%d returned, %d of them not to the backend", returned.Load(), keptBack.Load())
			}
		})
	}
}

// What a bucket has earned since it was taken is not given back again, however late, also
// when its charge is no longer known.
func TestDeferredGivesBackNothingEarned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := limiter.NewMemory(limiter.MemoryConfig{Clock: func() time.Duration { return time.Duration(time.Now().UnixNano()) }})
		if err != nil {
			t.Fatal(err)
		}
		d := newDeferred(t, m, limiter.DeferredConfig{})
		stop := runInBubble(t, d.Run)
		defer stop()
		q := rules.Quota{Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 100}.WithDefaults()
		takes := func(n int64) limiter.Op {
			t.Helper()
			op := fakeOp(limiter.Take, "k", n, &q)
			res, _ := mustDo(t, d, op)
			if !res.Allowed {
				t.Fatalf("%+v", res)
			}
			op.Ask = res.Return()
			return op
		}
		takes(1) // of which the backend is asked: what follows is taken here
		old := takes(50)
		for range 6 {
			time.Sleep(limiter.DefaultEvery)
			takes(1)
		}
		time.Sleep(20 * time.Second)
		takes(100)
		time.Sleep(limiter.DefaultEvery)
		mustDo(t, d, old)
		time.Sleep(time.Second)
		res, err := m.Do(context.Background(), fakeOp(limiter.Peek, "k", 0, &q))
		if err != nil || res.Remaining > 11 { // a second's, and a tenth's
			t.Errorf("%d remain of 100 that were taken 1.1s ago: %v", res.Remaining, err)
		}
	})
}
