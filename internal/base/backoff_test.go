package base

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffDoublesUpToTheLongest(t *testing.T) {
	for _, c := range []struct {
		failures       int
		least, longest time.Duration
		want           time.Duration
	}{
		{0, time.Second, time.Minute, time.Second},
		{3, time.Second, time.Minute, 8 * time.Second},
		{6, time.Second, time.Minute, time.Minute},
		{1, time.Second, time.Second, time.Second},
		{50, time.Second, time.Minute, time.Minute},
		{math.MaxInt, time.Second, time.Minute, time.Minute},
		{2, time.Second, math.MaxInt64, 4 * time.Second},
		{61, time.Second, math.MaxInt64, math.MaxInt64},
	} {
		for range 100 {
			if d := Backoff(c.failures, c.least, c.longest); d < c.want/2 || d >= c.want {
				t.Fatalf("%d failures, %v to %v: %v, want %v to %v", c.failures, c.least, c.longest, d, c.want/2, c.want)
			}
		}
	}
}

func TestBackoffDiffers(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 10 {
		seen[Backoff(0, time.Hour, time.Hour)] = true
	}
	if len(seen) < 5 {
		t.Errorf("only %d waits of 10 differ", len(seen))
	}
}

func TestWaitBackoffEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		WaitBackoff(t.Context(), 3, time.Second, time.Minute)
		if d := time.Since(began); d < 4*time.Second || d >= 8*time.Second {
			t.Errorf("waited %v, want 4s to 8s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		WaitBackoff(ctx, 6, time.Second, time.Minute)
		if d := time.Since(began); d != time.Second {
			t.Errorf("waited %v, and the context ended after 1s", d)
		}
	})
}
