package middleware

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A request that ends while it is charged waits for that charge, and its ticket is not used
// before.
func TestEndWaitsForCharge(t *testing.T) {
	first, second := costRule(t, "first", rules.Millis, 1, 1000), costRule(t, "second", rules.Millis, 1, 1000)
	started := time.Now()
	var calls atomic.Int32
	inside, leave := make(chan struct{}), make(chan struct{})
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{first, second}}, WithClock(func() time.Duration {
		if calls.Add(1) == 2 { // to make the bucket of the first rule
			close(inside)
			<-leave
		}
		return time.Since(started)
	}))
	mux := http.NewServeMux()
	release, done := make(chan struct{}), make(chan struct{})
	mux.HandleFunc("GET /s", func(http.ResponseWriter, *http.Request) { <-release })
	h := f.Handler(mux)
	go func() {
		defer close(done)
		serve(h, "GET", "/s?q=1")
	}()
	for f.ticketsRunning() == 0 {
		runtime.Gosched()
	}
	calls.Store(0)
	f.heat(t, "first GET /s?q=1")
	<-inside // the first rule is being charged
	close(release)
	for f.ticketsRunning() > 0 {
		runtime.Gosched()
	}
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-done:
		t.Error("a request has ended while it was charged")
	default:
	}
	close(leave)
	<-done
	counts := f.keyCounts()
	if a, b := counts["first GET /s?q=1"], counts["second GET /s?q=1"]; a < 100 || a != b {
		t.Errorf("counted %d and %d ms, want the same of both rules", a, b)
	}
	if s := f.Stats(); s.Panics != 0 || s.Charged != 1 {
		t.Errorf("%+v", s)
	}
}

func (f *fixture) ticketsRunning() (n int) {
	for i := range f.running.shards {
		n += f.running.shards[i].size()
	}
	return n
}

// A panic while a request is charged fails no request, and ends no later charge.
func TestChargePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{costRule(t, "r", rules.Millis, 0, 0)}}, WithClock(func() time.Duration {
			if calls.Add(1) == 1 {
				panic("no clock")
			}
			return time.Hour
		}))
		mux := http.NewServeMux()
		mux.Handle("GET /s", sleeper)
		var all sync.WaitGroup
		all.Go(func() { sleep(f.Handler(mux), 1, 350*time.Millisecond, "") })
		for _, want := range []int64{0, 200, 100} {
			time.Sleep(chargeEvery)
			synctest.Wait()
			if n := f.keyCounts()["r GET /s?q=1"]; n != want {
				t.Errorf("counted %d ms, want %d", n, want)
			}
		}
		all.Wait()
		if n := f.keyCounts()["r GET /s?q=1"]; n != 50 {
			t.Errorf("counted %d ms at the end, want 50", n)
		}
		if s := f.Stats(); s.Panics != 1 || s.Charged != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A request that begins as the timer finds no other is charged while it runs.
func TestTimerIsSetAgain(t *testing.T) {
	inBubble(t, rules.Rules{Rules: []rules.Rule{costRule(t, "r", rules.Millis, 0, 0)}}, func(t *testing.T, f *fixture) {
		mux := http.NewServeMux()
		mux.Handle("GET /s", sleeper)
		h := f.Handler(mux)
		for range 200 {
			var all sync.WaitGroup
			all.Go(func() { sleep(h, 1, chargeEvery, "") })
			time.Sleep(chargeEvery)
			for q := range 4 {
				all.Go(func() { sleep(h, 2+q, 5*chargeEvery/2, "") })
			}
			time.Sleep(9 * chargeEvery / 4)
			counts := f.keyCounts()
			for q := range 4 {
				if n := counts[fmt.Sprint("r GET /s?q=", 2+q)]; n < 100 {
					t.Fatalf("a request has run for 225 ms, of which %d are counted", n)
				}
			}
			all.Wait()
			f.wantNothingRuns(t)
			f.keyCounts()
		}
	})
}

// Who ends a ticket with a time charges that time, unless the ticket was started.
func TestStart(t *testing.T) {
	inBubble(t, rules.Rules{Rules: []rules.Rule{costRule(t, "r", rules.Millis, 0, 0), costRule(t, "bytes", rules.Bytes, 0, 0)}}, func(t *testing.T, f *fixture) {
		for _, c := range []struct {
			starts int
			want   int64
		}{{0, 7}, {1, 250}, {2, 250}, {0, 7}} {
			_, ticket := f.Begin(search)
			for range c.starts {
				ticket.Start()
			}
			time.Sleep(250 * time.Millisecond)
			ticket.End(Cost{Time: 7 * time.Millisecond, Bytes: 3})
			if got, want := f.keyCounts(), map[string]int64{"r GET /s?q=1": c.want, "bytes GET /s?q=1": 3}; !maps.Equal(got, want) {
				t.Errorf("started %d times: %v, want %v", c.starts, got, want)
			}
		}
		_, ticket := f.Begin(search) // a ticket that is never ended
		time.Sleep(time.Second)
		if got := f.keyCounts(); len(got) != 0 || ticket == nil {
			t.Errorf("%v, want nothing of a ticket that was not started", got)
		}
		var none *Ticket
		none.Start()
		f.wantNothingRuns(t)
	})
}
