package benchmarks

import (
	"context"
	"sync"
	"testing"

	xsemaphore "golang.org/x/sync/semaphore"

	"github.com/hotparam/hotparam/limiter/semaphore"
)

// BenchmarkSemaphore acquires one of eight permits and releases it, without waiting. The project's
// semaphore has permits for each of many keys, the others for a single one.
func BenchmarkSemaphore(b *testing.B) {
	ctx := context.Background()
	b.Run("hotparam", func(b *testing.B) {
		s := semaphore.New(semaphore.Config{})
		b.ReportAllocs()
		for b.Loop() {
			lease, d, err := s.Acquire(ctx, "GET /report", semaphore.Request{Permits: 8})
			if err != nil || !d.Allowed {
				b.Fatal(d, err)
			}
			lease.Release()
		}
	})
	b.Run("x/sync/semaphore", func(b *testing.B) {
		s := xsemaphore.NewWeighted(8)
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Acquire(ctx, 1); err != nil {
				b.Fatal(err)
			}
			s.Release(1)
		}
	})
	b.Run("x/sync/semaphore in sync.Map", func(b *testing.B) { // one for each key, and none is ever removed
		var all sync.Map
		b.ReportAllocs()
		for b.Loop() {
			s, ok := all.Load("GET /report")
			if !ok {
				s, _ = all.LoadOrStore("GET /report", xsemaphore.NewWeighted(8))
			}
			if err := s.(*xsemaphore.Weighted).Acquire(ctx, 1); err != nil {
				b.Fatal(err)
			}
			s.(*xsemaphore.Weighted).Release(1)
		}
	})
	b.Run("channel", func(b *testing.B) {
		s := make(chan struct{}, 8)
		b.ReportAllocs()
		for b.Loop() {
			s <- struct{}{}
			<-s
		}
	})
}
