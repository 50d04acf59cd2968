package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// semaphoreAsk returns a request for one of the permits that waits for up to an hour.
func semaphoreAsk(permits int64) semaphore.Request {
	return semaphore.Request{Permits: permits, Queue: 100, Within: time.Hour}
}

func mustHold(t testing.TB, s semaphore.Acquirer, key string, ask semaphore.Request) semaphore.Lease {
	t.Helper()
	l, d, err := s.Acquire(t.Context(), key, ask)
	if err != nil || !d.Allowed || l == (semaphore.Lease{}) {
		t.Fatalf("Acquire(%q, %+v): %+v, %v", key, ask, d, err)
	}
	return l
}

func mustBeBusy(t testing.TB, s semaphore.Acquirer, key string, ask semaphore.Request) rules.Decision {
	t.Helper()
	l, d, err := s.Acquire(t.Context(), key, ask)
	if err != nil || d.Allowed || d.Reason != rules.ReasonBusy || l != (semaphore.Lease{}) {
		t.Fatalf("Acquire(%q, %+v): %v, %+v, %v; want it denied", key, ask, l, d, err)
	}
	return d
}

// semaphoreLine records the order in which waiters are served. Each keeps its permits.
type semaphoreLine struct {
	t      *testing.T
	s      *semaphore.Memory
	mu     sync.Mutex
	served []string
	leases []semaphore.Lease
}

// come waits in its own goroutine, which is in the line when come returns. The test runs in a
// bubble.
func (l *semaphoreLine) come(ctx context.Context, name string, ask semaphore.Request) {
	go func() {
		lease, d, err := l.s.Acquire(ctx, "k", ask)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case err != nil:
			name += " " + err.Error()
		case !d.Allowed:
			name += " denied"
		}
		l.served = append(l.served, name)
		l.leases = append(l.leases, lease)
	}()
	synctest.Wait()
}

func (l *semaphoreLine) want(names ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if fmt.Sprint(l.served) != fmt.Sprint(names) {
		l.t.Fatalf("served %q, want %q", l.served, names)
	}
}

// release releases the lease of the i-th served waiter.
func (l *semaphoreLine) release(i int) {
	l.mu.Lock()
	lease := l.leases[i]
	l.mu.Unlock()
	lease.Release()
	synctest.Wait()
}

func TestSemaphore(t *testing.T) {
	s := semaphore.New(semaphore.Config{})
	ask := semaphore.Request{Permits: 2}
	a := mustHold(t, s, "k", ask)
	b, d, err := s.Acquire(t.Context(), "k", ask)
	if want := (rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 2}); d != want || err != nil {
		t.Errorf("the second: %+v, %v, want %+v", d, err, want)
	}
	if d := mustBeBusy(t, s, "k", ask); d.Limit != 2 || d.Remaining != 0 || d.RetryAfter < time.Millisecond {
		t.Errorf("the third: %+v", d)
	}
	mustHold(t, s, "other", ask).Release()
	a.Release()
	a.Release() // has no further effect
	a = mustHold(t, s, "k", ask)
	mustBeBusy(t, s, "k", ask)
	a.Release()
	b.Release()
	if got, want := s.Stats(), (semaphore.Stats{}); got != want {
		t.Errorf("Stats() = %+v, want %+v", got, want)
	}
}

func TestSemaphoreArguments(t *testing.T) {
	s := semaphore.New(semaphore.Config{})
	for _, tc := range []struct {
		key string
		ask semaphore.Request
	}{
		{"", semaphore.Request{Permits: 1}},
		{"k", semaphore.Request{Permits: 0}},
		{"k", semaphore.Request{Permits: math.MinInt64}},
	} {
		if l, d, err := s.Acquire(t.Context(), tc.key, tc.ask); err == nil || l != (semaphore.Lease{}) || d.Allowed {
			t.Errorf("Acquire(%q, %+v): %v, %+v, %v; want an error", tc.key, tc.ask, l, d, err)
		}
	}
	if _, _, err := s.Acquire(t.Context(), "", semaphoreAsk(1)); !errors.Is(err, limiter.ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	huge := semaphore.Request{Permits: 1, Queue: math.MinInt, Class: math.MaxInt, Within: math.MinInt64}
	l := mustHold(t, s, "k", huge)
	mustBeBusy(t, s, "k", huge)
	huge.Class, huge.Within = math.MinInt, math.MaxInt64
	mustBeBusy(t, s, "k", huge)
	l.Release()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Acquire(ended, "k", semaphoreAsk(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if got := s.Stats(); got.Held != 0 || got.Keys != 0 || got.Waiting != 0 {
		t.Errorf("left: %+v", got)
	}
}

// Within a class the newest is first.
func TestSemaphoreUnfair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := semaphoreAsk(1)
		line := &semaphoreLine{t: t, s: semaphore.New(semaphore.Config{Unfair: true})}
		a := mustHold(t, line.s, "k", ask)
		low := ask
		low.Class = 1
		line.come(t.Context(), "low", low)
		line.come(t.Context(), "first", ask)
		line.come(t.Context(), "second", ask)
		a.Release()
		line.want("second")
		line.release(0)
		line.want("second", "first")
		line.release(1)
		line.want("second", "first", "low")
	})
}

// A reload changes the number of permits. Existing leases stay valid.
func TestSemaphoreResize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := semaphoreAsk(2)
		line := &semaphoreLine{t: t, s: semaphore.New(semaphore.Config{})}
		a, b := mustHold(t, line.s, "k", ask), mustHold(t, line.s, "k", ask)
		line.come(t.Context(), "one", ask)
		line.come(t.Context(), "uno", ask)

		fewer := semaphoreAsk(1)
		fewer.Within = 0
		if d := mustBeBusy(t, line.s, "k", fewer); d.Limit != 1 || d.Remaining != 0 {
			t.Errorf("fewer: %+v", d)
		}
		a.Release()
		line.want()
		b.Release()
		line.want("one")

		more := semaphoreAsk(3)
		l, d, err := line.s.Acquire(t.Context(), "k", more)
		if err != nil || !d.Allowed || d.Limit != 3 || d.Remaining != 0 {
			t.Errorf("more: %+v, %v", d, err)
		}
		line.want("one", "uno") // they came first
		l.Release()
		line.release(0)
		line.release(1)
		if got := line.s.Stats(); got.Held != 0 || got.Keys != 0 {
			t.Errorf("Stats() = %+v", got)
		}
	})
}

func TestSemaphoreDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := semaphoreAsk(1)
		line := &semaphoreLine{t: t, s: semaphore.New(semaphore.Config{})}
		a := mustHold(t, line.s, "k", ask)
		line.come(t.Context(), "waiter", ask)
		line.s.Drain()
		line.want("waiter denied")
		if d := mustBeBusy(t, line.s, "new", ask); d.RetryAfter != time.Second || d.Remaining != 1 {
			t.Errorf("drained: %+v", d)
		}
		mustBeBusy(t, line.s, "k", ask)
		a.Release()
		if got, want := line.s.Stats(), (semaphore.Stats{}); got != want {
			t.Errorf("Stats() = %+v, want %+v", got, want)
		}
		line.s.Resume()
		mustHold(t, line.s, "k", ask).Release()
	})
}

// The estimate is the lease duration × the place in the line / the number of permits.
func TestSemaphoreEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := semaphoreAsk(2)
		now := ask
		now.Within = 0
		line := &semaphoreLine{t: t, s: semaphore.New(semaphore.Config{})}
		retry := func(class int, want time.Duration) {
			t.Helper()
			ask := now
			ask.Class = class
			if d := mustBeBusy(t, line.s, "k", ask); d.RetryAfter != want {
				t.Errorf("RetryAfter in class %d: %v, want %v", class, d.RetryAfter, want)
			}
		}
		a := mustHold(t, line.s, "k", ask)
		mustHold(t, line.s, "k", ask)
		retry(0, time.Millisecond)
		time.Sleep(800 * time.Millisecond) // none is released: they last that long at least
		retry(0, 400*time.Millisecond)
		a.Release()
		a = mustHold(t, line.s, "k", ask)
		time.Sleep(1600 * time.Millisecond)
		a.Release() // 800 ms + (1600 ms - 800 ms) / 8
		a = mustHold(t, line.s, "k", ask)
		retry(0, 450*time.Millisecond)
		better := ask
		better.Class = 1
		line.come(t.Context(), "one", better)
		line.come(t.Context(), "two", better)
		retry(0, 450*time.Millisecond)
		retry(1, 3*450*time.Millisecond)
		line.s.Drain()
		line.s.Resume()
		time.Sleep(100 * 24 * time.Hour)
		a.Release()
		mustHold(t, line.s, "k", ask)
		retry(0, time.Hour) // and no more
	})
}

// At no time are more permits held than there are, and none is lost.
func TestSemaphoreConcurrent(t *testing.T) {
	const keys, permits, workers, rounds = 3, 4, 32, 300
	for _, unfair := range []bool{false, true} {
		s := semaphore.New(semaphore.Config{Unfair: unfair})
		var held [keys]atomic.Int64
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				for j := range rounds {
					k, ask := (i+j)%keys, semaphoreAsk(permits)
					ask.Class, ask.Within = i%3, time.Duration(j%5)*time.Millisecond
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+j%7)*time.Millisecond)
					l, d, err := s.Acquire(ctx, fmt.Sprint("k", k), ask)
					cancel()
					if err != nil || !d.Allowed {
						continue
					}
					if n := held[k].Add(1); n > permits {
						t.Errorf("%d held of %d", n, permits)
					}
					if j%4 == 0 {
						time.Sleep(10 * time.Microsecond)
					}
					held[k].Add(-1)
					for range 2 {
						wg.Go(l.Release)
					}
				}
			})
		}
		wg.Wait()
		if got := s.Stats(); got.Held != 0 || got.Waiting != 0 || got.Keys != 0 {
			t.Errorf("unfair %v: left %+v", unfair, got)
		}
	}
}

// A key that comes and goes allocates nothing.
func TestSemaphoreAllocations(t *testing.T) {
	s := semaphore.New(semaphore.Config{})
	ask := semaphore.Request{Permits: 10}
	mustHold(t, s, "known", ask)
	for _, key := range []string{"known", "new"} {
		if n := testing.AllocsPerRun(1000, func() { mustHold(t, s, key, ask).Release() }); n != 0 {
			t.Errorf("%s key: %v allocations", key, n)
		}
	}
}

// Keys that are free again take no memory.
func TestSemaphoreMemory(t *testing.T) {
	s := semaphore.New(semaphore.Config{})
	var leases []semaphore.Lease
	before := heapInUse()
	for i := range 40_000 {
		leases = append(leases, mustHold(t, s, fmt.Sprint(i), semaphore.Request{Permits: 1}))
	}
	for _, l := range leases {
		l.Release()
	}
	clear(leases)
	left := int64(heapInUse()) - int64(before)
	t.Logf("%d bytes are left", left)
	if left > 700<<10 {
		t.Errorf("%d bytes are left of 40,000 keys", left)
	}
	if got := s.Stats(); got.Keys != 0 || got.Held != 0 {
		t.Errorf("left: %+v", got)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkSemaphore(b *testing.B) {
	s := semaphore.New(semaphore.Config{})
	ask := semaphore.Request{Permits: math.MaxInt64}
	mustHold(b, s, "k", ask)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l, _, _ := s.Acquire(context.Background(), "k", ask)
			l.Release()
		}
	})
}
