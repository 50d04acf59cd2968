package middleware

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// inBubble runs a test of a guard whose clock is the bubble's.
func inBubble(t *testing.T, ruleset rules.Rules, test func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		test(t, newFixture(t, ruleset, WithClock(func() time.Duration { return time.Since(start) })))
	})
}

// sleeper is a handler that takes the time of the parameter "for", and panics if there is "panic".
var sleeper = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	d, err := time.ParseDuration(query.Get("for"))
	if err != nil {
		panic(err)
	}
	time.Sleep(d)
	if query.Has("panic") {
		panic(http.ErrAbortHandler)
	}
})

// sleep serves a request of q that takes some time. It recovers from the handler's panic.
func sleep(h http.Handler, q int, d time.Duration, suffix string) {
	defer func() { _ = recover() }()
	serve(h, "GET", fmt.Sprintf("/s?q=%d&for=%v%s", q, d, suffix))
}

// wholeMillis returns a duration in milliseconds, rounded up.
func wholeMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// A key becomes hot and is limited while its only request runs.
func TestHangingRequestIsHot(t *testing.T) {
	rule := costRule(t, "r", rules.Millis, 3600, 10)
	rule.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 500, Per: time.Second})}
	runRule(t, rule, nil, func(t *testing.T, a *alone) {
		mux := http.NewServeMux()
		mux.Handle("GET /s", sleeper)
		h := a.Handler(mux)
		var all sync.WaitGroup
		all.Go(func() { sleep(h, 1, time.Minute, "") })
		time.Sleep(400 * time.Millisecond)
		a.want(t, "cool")
		time.Sleep(550 * time.Millisecond)
		a.want(t, "local")
		if w := serve(h, "GET", "/s?q=1&for=0s"); w.Code != http.StatusTooManyRequests {
			t.Errorf("status %d while a request has run for a second, want 429", w.Code)
		}
		if w := serve(h, "GET", "/s?q=2&for=0s"); w.Code != http.StatusOK {
			t.Errorf("another key: status %d", w.Code)
		}
		if s := a.Stats(); s.Charged != 0 {
			t.Errorf("%d requests are charged at their end, and none has ended", s.Charged)
		}
		all.Wait()
		if s := a.Stats(); s.Charged != 1 || s.Panics != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Whatever ends and reloads coincide with charges of running requests, the time of each request is
// counted and charged once, rounded up.
func TestTimeIsChargedOnce(t *testing.T) {
	const keys, burst = 4, 500_000
	hot, hotter := costRule(t, "hot", rules.Millis, 1, burst), costRule(t, "hot", rules.Millis, 1, burst)
	hotter.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 7, Per: time.Second})}
	keyed, single := limitRule(t, "keyed", "GET /s", byNames("q"), 1, burst), limitRule(t, "single", "GET /s", rules.By{}, 1, burst)
	keyed.Count, single.Count = rules.Millis, rules.Millis
	bytes := costRule(t, "bytes", rules.Bytes, 0, 0)
	ruleset := rules.Rules{Namespace: "test", Rules: []rules.Rule{hot, keyed, bytes, single}}
	other := rules.Rules{Namespace: "test", Rules: []rules.Rule{bytes, single, keyed, hotter}}
	for seed := range uint64(20) {
		inBubble(t, ruleset, func(t *testing.T, f *fixture) {
			f.heat(t, "hot GET /s?q=0", "hot GET /s?q=1")
			mux := http.NewServeMux()
			mux.Handle("GET /s", sleeper)
			h := f.Handler(mux)
			random := rand.New(rand.NewPCG(seed, 1))
			want := make([]int64, keys)
			var all sync.WaitGroup
			for range 300 {
				q, after := random.IntN(keys), time.Duration(random.IntN(20))*chargeEvery/2
				took := time.Duration(random.IntN(8)) * chargeEvery / 2 // often ends at a charge
				switch random.IntN(3) {
				case 0:
					took = time.Duration(random.Int64N(int64(time.Second)))
				case 1:
					took += time.Duration(random.IntN(3))*time.Millisecond/2 + time.Duration(random.IntN(2))
				}
				suffix := ""
				if random.IntN(4) == 0 {
					suffix = "&panic"
				}
				want[q] += wholeMillis(took)
				all.Go(func() {
					time.Sleep(after)
					sleep(h, q, took, suffix)
				})
			}
			for i := range 8 {
				time.Sleep(chargeEvery)
				if err := f.Reload([]*rules.Rules{&other, &ruleset}[i%2]); err != nil {
					t.Fatal(err)
				}
			}
			all.Wait()
			for q := range 2 {
				if n := f.stateOf(rules.Key{Rule: "hot", Text: fmt.Sprint("GET /s?q=", q)}).charged.Load(); n != want[q] {
					t.Errorf("seed %d: q=%d is charged %d ms, want %d", seed, q, n, want[q])
				}
			}
			counts, sum := f.keyCounts(), int64(0)
			for q, ms := range want {
				sum += ms
				if n := counts[fmt.Sprint("hot GET /s?q=", q)]; n != ms {
					t.Errorf("seed %d: q=%d has %d ms, want %d", seed, q, n, ms)
				}
			}
			for q := range keys {
				// The tightest limit has the fewest tokens left.
				d := f.Check(get("GET /s", "/s", fmt.Sprint("q=", q)))
				if !d.Allowed || d.Remaining != burst-sum {
					t.Errorf("seed %d: q=%d has %d ms left, want %d", seed, q, d.Remaining, burst-sum)
				}
			}
			if s := f.Stats(); s.Panics != 0 {
				t.Errorf("seed %d: %+v", seed, s)
			}
			f.wantNothingRuns(t)
		})
	}
}

// wantNothingRuns checks that the guard holds no ticket and, after an interval, no timer.
func (f *fixture) wantNothingRuns(t *testing.T) {
	t.Helper()
	if n := f.ticketsRunning(); n > 0 {
		t.Errorf("%d tickets run", n)
	}
	time.Sleep(chargeEvery)
	synctest.Wait()
	if f.running.armed.Load() {
		t.Error("the timer is set")
	}
}

// Limits are charged while a request runs, so that later ones are refused before it ends.
func TestRunningRequestsAreCharged(t *testing.T) {
	hot := costRule(t, "r", rules.Millis, 1, 250)
	keyed, single := limitRule(t, "r", "GET /s", byNames("q"), 1, 250), limitRule(t, "r", "GET /s", rules.By{}, 1, 250)
	keyed.Count, single.Count = rules.Millis, rules.Millis
	for name, rule := range map[string]rules.Rule{"hot": hot, "keyed": keyed, "single": single} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, rules.Rules{Rules: []rules.Rule{rule}}, func(t *testing.T, f *fixture) {
				if name == "hot" {
					f.heat(t, "r GET /s?q=1")
				}
				mux := http.NewServeMux()
				mux.Handle("GET /s", sleeper)
				var all sync.WaitGroup
				all.Go(func() { sleep(f.Handler(mux), 1, 420500*time.Microsecond, "") })
				for _, left := range []int64{250, 150, 50, 0, 0} {
					time.Sleep(chargeEvery / 2)
					d := f.Check(search)
					if d.Allowed != (left > 0) || d.Remaining != left {
						t.Errorf("%+v, want %d left", d, left)
					}
					time.Sleep(chargeEvery / 2)
				}
				all.Wait()
				if d := f.Check(search); d.Allowed || d.RetryAfter < 171*time.Hour || d.RetryAfter > 172*time.Hour {
					t.Errorf("%+v, want a debt of 171 ms", d)
				}
				if name == "hot" {
					if n := f.keyCounts()["r GET /s?q=1"]; n != 421 {
						t.Errorf("counted %d ms, want 421", n)
					}
				}
			})
		})
	}
}

// The time of allowed values is not counted, and that of keys which an operator allows is counted
// and not charged.
func TestRunningRequestsThatAreAllowed(t *testing.T) {
	rule := costRule(t, "r", rules.Millis, 1, 250)
	rule.Except = []rules.Exception{{Values: is("q", "2"), Action: rules.Allow}}
	inBubble(t, rules.Rules{Rules: []rules.Rule{rule}}, func(t *testing.T, f *fixture) {
		f.heat(t, "r GET /s?q=1", "r GET /s?q=2")
		f.control(t, [2]string{"allow", "r GET /s?q=1"})
		mux := http.NewServeMux()
		mux.Handle("GET /s", sleeper)
		h := f.Handler(mux)
		var all sync.WaitGroup
		for q := range 3 {
			all.Go(func() { sleep(h, q, 400*time.Millisecond, "") })
		}
		time.Sleep(350 * time.Millisecond)
		if got, want := f.keyCounts(), map[string]int64{"r GET /s?q=0": 300, "r GET /s?q=1": 300}; !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
		all.Wait()
		if n := f.stateOf(rules.Key{Rule: "r", Text: "GET /s?q=1"}).charged.Load(); n != 0 {
			t.Errorf("%d ms are charged to a key that an operator allows", n)
		}
	})
}

// A request that runs while its rule changes counts by its old rule, except in another unit.
func TestReloadWhileTimeIsCharged(t *testing.T) {
	rule, other, tighter := costRule(t, "r", rules.Millis, 1, 1000), costRule(t, "r", rules.Bytes, 1, 1000), costRule(t, "r", rules.Millis, 1, 500)
	for name, c := range map[string]struct {
		rules []rules.Rule
		want  int64
	}{
		"no rule": {nil, 451}, "another unit": {[]rules.Rule{other}, 200}, "another limit": {[]rules.Rule{tighter}, 451},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, rules.Rules{Rules: []rules.Rule{rule}}, func(t *testing.T, f *fixture) {
				f.heat(t, "r GET /s?q=1")
				mux := http.NewServeMux()
				mux.Handle("GET /s", sleeper)
				var all sync.WaitGroup
				all.Go(func() { sleep(f.Handler(mux), 1, 450*time.Millisecond+1, "") })
				time.Sleep(250 * time.Millisecond)
				if err := f.Reload(&rules.Rules{Namespace: "test", Rules: c.rules}); err != nil {
					t.Fatal(err)
				}
				all.Wait()
				if n := f.keyCounts()["r GET /s?q=1"]; n != c.want {
					t.Errorf("counted %d ms, want %d", n, c.want)
				}
				if name == "another limit" {
					want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 500, Remaining: 49, Rule: "r"})
				}
				f.wantNothingRuns(t)
			})
		})
	}
}
