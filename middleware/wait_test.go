package middleware

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// running returns a guard on the system's clock, which in a synctest bubble is the bubble's.
func running(tb testing.TB, ruleset []rules.Rule, opts ...Option) *fixture {
	tb.Helper()
	return newFixture(tb, rules.Rules{Rules: ruleset}, append([]Option{WithClock(sinceEpoch(time.Now()))}, opts...)...)
}

// waitRule returns a rule that makes requests wait for their turn.
func waitRule(tb testing.TB, id string, by rules.By, rate rules.Rate, burst int64, wait time.Duration) rules.Rule {
	tb.Helper()
	r := limitRule(tb, id, "*", by, 1, 1)
	r.Limit = &rules.Limit{Quota: rules.Quota{Rate: rate, Burst: burst}, Mode: rules.ModeWait, Wait: wait}
	return r
}

var tenASecond = rules.Rate{N: 10, Per: time.Second}

// passes sends n requests at once. It returns the times at which requests passed, and the
// refusals.
func passes(f *fixture, req Request, n int) (at []time.Duration, refused []rules.Decision) {
	start := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			d := f.Check(req)
			mu.Lock()
			defer mu.Unlock()
			if d.Allowed {
				at = append(at, time.Since(start))
			} else {
				refused = append(refused, d)
			}
		})
	}
	wg.Wait()
	slices.Sort(at)
	return at, refused
}

// Requests over the limit wait for their turn, one after the other. Requests whose turn would come
// too late are refused at once. This holds for one bucket, for a key and for a hot key.
func TestWait(t *testing.T) {
	hot := waitRule(t, "r", byNames("q"), tenASecond, 1, time.Second)
	hot.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
	for name, rule := range map[string]rules.Rule{
		"single": waitRule(t, "r", rules.By{}, tenASecond, 1, time.Second),
		"keyed":  waitRule(t, "r", byNames("q"), tenASecond, 1, time.Second),
		"hot":    hot,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := running(t, []rules.Rule{rule})
				if name == "hot" {
					f.heat(t, "r GET /s?q=1")
				}
				at, refused := passes(f, search, 15)
				var want []time.Duration
				for i := range 11 {
					want = append(want, time.Duration(i)*100*time.Millisecond)
				}
				if !slices.Equal(at, want) {
					t.Errorf("passed at %v, want %v", at, want)
				}
				for _, d := range refused {
					if d.Reason != rules.ReasonLimited || d.RetryAfter != 100*time.Millisecond || d.Rule != "r" {
						t.Errorf("%+v", d)
					}
				}
				if s := f.Stats(); len(refused) != 4 || s.Waited != 10 || s.Limited != 4 {
					t.Errorf("%d refused, %+v", len(refused), s)
				}
			})
		})
	}
}

// With several rules a request waits once, for the longest delay, and the decision has no delay
// left.
func TestWaitsOnce(t *testing.T) {
	quick := waitRule(t, "quick", rules.By{}, tenASecond, 1, time.Minute)
	slow := waitRule(t, "slow", rules.By{}, rules.Rate{N: 1, Per: time.Second}, 1, time.Minute)
	for _, rules := range [][]rules.Rule{{quick, slow}, {slow, quick}} {
		synctest.Test(t, func(t *testing.T) {
			f := running(t, rules)
			f.Check(search)
			start := time.Now()
			d := f.Check(search)
			if took := time.Since(start); took != time.Second || !d.Allowed || d.Delay != 0 {
				t.Errorf("passed after %v: %+v", took, d)
			}
			if n := f.Stats().Waited; n != 1 {
				t.Errorf("%d waited", n)
			}
		})
	}
}

// A reservation is returned if another rule refuses, and no request waits for it.
func TestReservationIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running(t, []rules.Rule{
			waitRule(t, "line", rules.By{}, tenASecond, 1, time.Minute),
			limitRule(t, "hard", "GET /s", rules.By{}, 1, 1),
		})
		f.Check(search)
		start := time.Now()
		for range 50 {
			if d := f.Check(search); d.Allowed || d.Rule != "hard" {
				t.Fatalf("%+v", d)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("refused after %v", took)
		}
		other := get("GET /t", "/t", "")
		if f.Check(other); time.Since(start) != 100*time.Millisecond {
			t.Errorf("the next one passed after %v: reservations leaked", time.Since(start))
		}
	})
}

// A request whose client disconnects during the wait is refused, and returns its tokens.
func TestGoneWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running(t, []rules.Rule{waitRule(t, "r", rules.By{}, rules.Rate{N: 1, Per: time.Second}, 1, time.Minute)})
		f.Check(search)
		for name, check := range map[string]func(context.Context) rules.Decision{
			"Check": func(ctx context.Context) rules.Decision {
				req := search
				req.Context = ctx
				return f.Check(req)
			},
			"Enter": func(ctx context.Context) rules.Decision { return f.Enter(ctx, "job") },
			"Begin": func(ctx context.Context) rules.Decision {
				req := search
				req.Context = ctx
				d, ticket := f.Begin(req)
				if ticket != nil {
					t.Error("a ticket for one that has gone")
				}
				return d
			},
		} {
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, leave)
			start := time.Now()
			d := check(ctx)
			if took := time.Since(start); took != 300*time.Millisecond || d.Allowed || d.Reason != rules.ReasonLimited {
				t.Errorf("%s: after %v: %+v", name, took, d)
			}
		}
		if s := f.Stats(); s.Gone != 3 || s.Waited != 3 || s.Limited != 0 {
			t.Errorf("%+v", s)
		}
		start := time.Now() // 900 ms later
		if f.Check(search); time.Since(start) != 100*time.Millisecond {
			t.Errorf("waited %v: what was reserved is lost", time.Since(start))
		}
	})
}

// The same holds for the only rule of a route, for which only the key is checked.
func TestGoneFromHotKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := waitRule(t, "r", byNames("q"), rules.Rate{N: 1, Per: time.Second}, 3, time.Minute)
		rule.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
		rule.Limit.Priority = &rules.Priority{Name: "tier", First: []string{"gold", "silver"}}
		f := running(t, []rules.Rule{rule})
		f.heat(t, "r GET /s?q=1")
		if f.routeOf(&search).plain == nil {
			t.Fatal("the route is not plain")
		}
		for range 3 {
			f.Check(get("GET /s", "/s", "q=1&tier=gold"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(500*time.Millisecond, cancel)
		req := search
		req.Context = ctx
		start := time.Now()
		if d := f.Check(req); d.Allowed || time.Since(start) != 500*time.Millisecond {
			t.Errorf("after %v: %+v", time.Since(start), d)
		}
	})
}

// No request starts to wait beyond its context's deadline.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running(t, []rules.Rule{waitRule(t, "r", rules.By{}, rules.Rate{N: 1, Per: time.Second}, 1, time.Minute)})
		f.Check(search)
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		req := search
		req.Context = ctx
		start := time.Now()
		if d := f.Check(req); d.Allowed || d.RetryAfter != 100*time.Millisecond || time.Since(start) != 0 {
			t.Errorf("after %v: %+v", time.Since(start), d)
		}
	})
}

// A client that hangs up ends the wait.
func TestGoneOverHTTP(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		waitRule(t, "r", rules.By{}, rules.Rate{N: 1, Per: 5 * time.Minute}, 1, 10*time.Minute),
	}})
	server := httptest.NewServer(f.Handler(ok))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	f.Check(search) // the next one is due in five minutes
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/s", nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		resp, err := server.Client().Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	retry := func() time.Duration {
		return f.rules.Load().rules[0].spec.single.Do(f.now, limiter.Request{Kind: limiter.Peek, N: 1}).RetryAfter
	}
	eventually(t, func() bool { return retry() == 10*time.Minute }) // it waits
	hangUp()
	if err := <-done; err == nil {
		t.Error("it had an answer")
	}
	eventually(t, func() bool { return f.Stats().Gone == 1 && retry() == 5*time.Minute })
}

// eventually waits for another goroutine's effect.
func eventually(tb testing.TB, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("it does not happen")
		}
	}
}

func TestWithoutWaiting(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{waitRule(t, "r", rules.By{}, tenASecond, 1, time.Second)}}, WithoutWaiting())
	for i := range 11 {
		if d := f.Check(search); !d.Allowed || d.Delay != time.Duration(i)*100*time.Millisecond {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if d := f.Check(search); d.Allowed {
		t.Errorf("%+v", d)
	}
}

// A shaping bucket also spaces out requests within its limit.
func TestShape(t *testing.T) {
	rule := waitRule(t, "r", rules.By{}, tenASecond, 3, time.Minute)
	rule.Limit.Algorithm, rule.Limit.Shape = rules.LeakyBucket, true
	synctest.Test(t, func(t *testing.T) {
		at, refused := passes(running(t, []rules.Rule{rule}), search, 5)
		want := []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}
		if !slices.Equal(at, want) || len(refused) != 2 { // there are three places
			t.Errorf("passed at %v, want %v; refused %+v", at, want, refused)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at, _ := passes(running(t, []rules.Rule{rule}, WithShadow()), search, 3)
		if len(at) != 3 || time.Since(start) != 0 {
			t.Errorf("in shadow passed at %v", at)
		}
	})
}

func TestShadowDoesNotWait(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{waitRule(t, "r", rules.By{}, tenASecond, 1, time.Second)}}, WithShadow())
	f.Check(search)
	want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonShadow, Rule: "r"})
}
