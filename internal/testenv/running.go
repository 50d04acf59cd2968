package testenv

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Running runs a function until the test ends or stop is called, which waits for it to return. If
// it returns an error, the test fails.
func Running(tb testing.TB, run func(context.Context) error) (stop func()) {
	tb.Helper()
	// Do not use the test's own context, which ends before the first cleanup runs.
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

// Every calls f at a pace, with the number of the call, until ctx ends.
func Every(ctx context.Context, pace time.Duration, f func(n int)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f(n)
		}
	}
}
