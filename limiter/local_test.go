package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Ten events a second, twenty at once.
func ExampleNewLocal() {
	l := limiter.NewLocal(10, 20)
	if l.Allow() {
		fmt.Println("done at once")
	}
	if err := l.Wait(context.Background()); err == nil {
		fmt.Println("done in time")
	}
	// Output:
	// done at once
	// done in time
}

func TestLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewLocal(10, 3)
		for i := range 4 {
			if got, want := l.Allow(), i < 3; got != want {
				t.Errorf("Allow %d: %v, want %v", i, got, want)
			}
		}
		time.Sleep(100*time.Millisecond - 1)
		if l.Allow() {
			t.Error("allowed a nanosecond early")
		}
		time.Sleep(time.Nanosecond)
		if !l.Allow() {
			t.Error("denied though a token is back")
		}
		time.Sleep(300 * time.Millisecond)
		if l.AllowN(4) {
			t.Error("4 of 3 are allowed")
		}
		if !l.AllowN(3) || l.AllowN(-1) || !l.AllowN(0) {
			t.Error("AllowN: want 3 to pass, -1 not to, 0 to")
		}
	})
}

func TestLocalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := limiter.NewLocal(2, 2), time.Now()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if got, want := time.Since(start), max(0, time.Duration(i-1))*500*time.Millisecond; got != want {
					t.Errorf("the %d. passed after %v, want %v", i, got, want)
				}
			})
			synctest.Wait() // one after the other
		}
		all.Wait()
	})
}

func TestLocalWaitFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewLocal(1, 2)
		var denied *limiter.DeniedError
		if err := l.WaitN(t.Context(), 3); !errors.As(err, &denied) || denied.RetryAfter != 0 {
			t.Errorf("3 of 2: %v, want a denial for ever", err)
		}
		l.AllowN(2)
		soon, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := l.Wait(soon); !errors.As(err, &denied) || denied.RetryAfter != 500*time.Millisecond {
			t.Errorf("with half a second left: %v, want a denial at once", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go func() { time.Sleep(250 * time.Millisecond); stop() }()
		if err := l.WaitN(ctx, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled before: %v", err)
		}
		time.Sleep(750 * time.Millisecond)
		if !l.Allow() {
			t.Error("what was not waited for is lost")
		}
	})
}

func TestNewLocal(t *testing.T) {
	for _, tc := range []struct {
		perSecond float64
		burst     int64
	}{{0, 1}, {-1, 1}, {math.NaN(), 1}, {math.Inf(1), 1}, {rules.MaxRate + 1, 1}, {1e-300, 1}, {10, 0}, {10, -1}, {1, math.MaxInt64}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewLocal(%v, %d) does not panic", tc.perSecond, tc.burst)
				}
			}()
			limiter.NewLocal(tc.perSecond, tc.burst)
		}()
	}
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewLocal(0.5, 1)
		l.Allow()
		time.Sleep(2 * time.Second)
		if !l.Allow() {
			t.Error("0.5 a second is not one in two seconds")
		}
	})
	l := limiter.NewLocal(rules.MaxRate, 1<<40)
	if n := testing.AllocsPerRun(100, func() { l.Allow() }); n != 0 {
		t.Errorf("Allow: %v allocations, want none", n)
	}
}
