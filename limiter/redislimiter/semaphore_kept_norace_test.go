//go:build !race

package redislimiter

import (
	"context"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// keepingSemaphore returns a semaphore that has a spare of the key "k".
func keepingSemaphore(tb testing.TB) (*Semaphore, semaphore.Request) {
	s := semaphoreOf(tb, clientAt(tb, testenv.Redis(tb).URL()), nil)
	testenv.Running(tb, s.Run)
	ask := semaphore.Request{Permits: 8, Keep: true}
	eventually(tb, "a spare", func() bool {
		holds(tb, s, ask).Release()
		return s.Stats().Spare > 0
	})
	return s, ask
}

// A request that takes a spare allocates nothing.
func TestKeptPermitsAllocateNothing(t *testing.T) {
	s, ask := keepingSemaphore(t)
	ctx := context.Background()
	least := 1e9
	for range 20 { // a look allocates, as does a stall in which the spare was released
		least = min(least, testing.AllocsPerRun(1000, func() {
			l, _, err := s.Acquire(ctx, "k", ask)
			if err != nil || l == noLease {
				t.Fatal(l, err)
			}
			l.Release()
		}))
	}
	if least > 0 {
		t.Errorf("%v allocations", least)
	}
	if got := s.Stats(); got.Reused < 10_000 {
		t.Errorf("%+v", got)
	}
}

func BenchmarkKeptPermits(b *testing.B) {
	s, ask := keepingSemaphore(b)
	ctx := context.Background()
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		l, _, err := s.Acquire(ctx, "k", ask)
		must(b, err)
		l.Release()
	}
	got := s.Stats()
	b.ReportMetric(float64(got.Granted-got.Reused)/time.Since(start).Seconds(), "acquires/s")
}
