package testenv

import (
	"context"
	"sync"
	"testing"
)

// Running runs something until the test ends, or until stop is called, which waits
// for it to return. An error that it returns fails the test.
func Running(tb testing.TB, run func(context.Context) error) (stop func()) {
	tb.Helper()
	// Not the test's own context: that ends before the first clean-up runs.
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
