package limitertest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	goroutines = 8
	rounds     = 1000
)

// together runs f in goroutines that start at the same moment.
func together(f func(g int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for g := range goroutines {
		all.Go(func() {
			<-start
			f(g)
		})
	}
	close(start)
	all.Wait()
}

// testTakeConcurrent: at one instant exactly the burst is admitted, whoever
// asks for it.
func testTakeConcurrent(t *testing.T, fresh factory) {
	const burst = goroutines * rounds / 2
	lim := fresh(t, perSecond(10), burst)
	var admitted atomic.Int64
	together(func(int) {
		for range rounds {
			if lim.Take(time.Hour, 1).Allowed {
				admitted.Add(1)
			}
		}
	})
	if got := admitted.Load(); got != burst {
		t.Errorf("admitted %d, want the burst, %d", got, burst)
	}
}

// testGiveBackConcurrent: at one instant never more than the burst is held, and
// what was given back is there again, to the token.
func testGiveBackConcurrent(t *testing.T, fresh factory) {
	const burst = 10
	lim := fresh(t, perSecond(10), burst)
	var held, most atomic.Int64
	together(func(g int) {
		n := int64(1 + g%3)
		for range rounds {
			if !lim.Take(time.Hour, n).Allowed {
				continue
			}
			if now := held.Add(n); now > burst {
				most.Store(now)
			}
			held.Add(-n)
			lim.GiveBack(n)
		}
	})
	if got := most.Load(); got > burst {
		t.Errorf("%d tokens were held at once, of %d", got, burst)
	}
	check(t, "at the end", lim.Take(time.Hour, burst), decision(burst, true, 0, 0))
	check(t, "and no more", lim.Take(time.Hour, 1), decision(burst, false, 0, 100*ms))
}

// testClockConcurrent: goroutines that share a clock, and so see it a little
// late at times, are together held to burst + rate × time.
func testClockConcurrent(t *testing.T, fresh factory) {
	const burst = 5
	rate := perSecond(1000)
	lim := fresh(t, rate, burst)
	var clock, admitted atomic.Int64
	together(func(int) {
		for range rounds {
			if lim.Take(time.Duration(clock.Add(int64(100*time.Microsecond))), 1).Allowed {
				admitted.Add(1)
			}
		}
	})
	got, took := admitted.Load(), time.Duration(clock.Load())
	if !newIdeal(rate, burst).admits(got, took) {
		t.Errorf("admitted %d in %v", got, took)
	}
	// Late clocks may cost tokens, never many: demand was ten times the rate.
	if want := int64(took/ms) / 2; got < want {
		t.Errorf("admitted %d in %v, want at least %d", got, took, want)
	}
}
