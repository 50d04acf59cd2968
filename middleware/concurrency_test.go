package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// busyRule returns a rule that serves a limited number of requests at a time. With a wait of 0 no
// request waits.
func busyRule(tb testing.TB, id string, by rules.By, concurrency int, wait time.Duration) rules.Rule {
	tb.Helper()
	r := limitRule(tb, id, "*", by, 1, 1)
	r.Limit = &rules.Limit{Concurrency: concurrency, Mode: rules.ModeLimit}
	if wait > 0 {
		r.Limit.Mode, r.Limit.Wait = rules.ModeWait, wait
	}
	return r
}

// letIn begins a request that is let in, and returns its ticket.
func letIn(tb testing.TB, f *fixture, req Request) *Ticket {
	tb.Helper()
	d, ticket := f.Begin(req)
	if !d.Allowed || ticket == nil {
		tb.Fatalf("%+v, ticket %v", d, ticket)
	}
	return ticket
}

// A request that returns to the pool keeps no lease alive, neither one that its ticket has taken
// over nor one that it has released.
func TestPooledRequestsHoldNoLeases(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "a", byNames("q"), 1, 0), busyRule(t, "b", rules.By{}, 1, 0)}})
	for name, holds := range map[string]bool{"a ticket's": true, "released": false} {
		r := f.newRequest(&search, f.routeOf(&search), holds)
		r.applyRules()
		var d rules.Decision
		ticket := r.finish(&d)
		if (ticket != nil) != holds || !d.Allowed {
			t.Fatalf("%s: ticket %v, %+v", name, ticket, d)
		}
		ticket.End(Cost{})
		leases := r.pending.leases[:cap(r.pending.leases)]
		if len(leases) < 2 {
			t.Errorf("%s: room for %d leases; the request had two", name, len(leases))
		}
		for i, lease := range leases {
			if lease != (semaphore.Lease{}) {
				t.Errorf("%s: lease %d of %d is still there", name, i, len(leases))
			}
		}
	}
}

// A permit is held from Begin to End, whether the semaphore is for all requests, for a key or for
// a hot key.
func TestConcurrency(t *testing.T) {
	hot := busyRule(t, "r", byNames("q"), 2, 0)
	hot.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
	for name, rule := range map[string]rules.Rule{
		"single": busyRule(t, "r", rules.By{}, 2, 0), "keyed": busyRule(t, "r", byNames("q"), 2, 0), "hot": hot,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			if name == "hot" {
				f.heat(t, "r GET /s?q=1")
			}
			first, second := letIn(t, f, search), letIn(t, f, search)
			d, ticket := f.Begin(search)
			if d.Allowed || d.Reason != rules.ReasonBusy || d.Rule != "r" || d.Limit != 2 || ticket != nil {
				t.Errorf("%+v, %v", d, ticket)
			}
			if d := f.Check(search); d.Allowed {
				t.Errorf("Check: %+v", d)
			}
			other := f.Check(get("GET /s", "/s", "q=2"))
			if other.Allowed != (name != "single") {
				t.Errorf("another key: %+v", other)
			}
			first.End(Cost{})
			third := letIn(t, f, search)
			first.End(Cost{}) // once is enough, and twice no harm
			if d, _ := f.Begin(search); d.Allowed {
				t.Errorf("%+v: one was given back, not two", d)
			}
			second.End(Cost{})
			third.End(Cost{})
			for range 10 { // Check holds nothing
				if d := f.Check(search); !d.Allowed {
					t.Fatalf("%+v", d)
				}
			}
			if d, ticket := f.EnterCost(t.Context(), "other"); !d.Allowed {
				t.Errorf("%+v", d)
			} else {
				ticket.End(Cost{})
			}
			if s := f.Stats(); s.Busy != s.Limited || s.Busy < 3 {
				t.Errorf("%+v", s)
			}
			if name == "hot" {
				if keys := f.HotKeys(); keys[0].Refused != 3 || keys[0].Passed != 13 {
					t.Errorf("%+v", keys)
				}
			}
		})
	}
}

// The slow API of the article serves 8 requests at a time. The others wait for at most 2 s, in a
// line of bounded length.
func TestSlowAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := busyRule(t, "slow", rules.By{}, 8, 2*time.Second)
		rule.Limit.Queue = 20
		f := running(t, []rules.Rule{rule})
		var working, most atomic.Int64
		h := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), working.Add(1)))
			time.Sleep(1500 * time.Millisecond)
			working.Add(-1)
		}))
		start := time.Now()
		var mu sync.Mutex
		at := map[int][]time.Duration{}
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				w := serve(h, "GET", "/s")
				mu.Lock()
				defer mu.Unlock()
				at[w.Code] = append(at[w.Code], time.Since(start))
			})
		}
		wg.Wait()
		// 8 at once, 8 after 1.5 s. 12 waited for 2 s without success, 2 found the line full.
		if most.Load() != 8 || len(at[200]) != 16 || len(at[503]) != 14 {
			t.Errorf("%d at a time, %v", most.Load(), at)
		}
		if slices.Max(at[200]) != 3*time.Second || slices.Max(at[503]) != 2*time.Second || slices.Min(at[503]) != 0 {
			t.Errorf("%v", at)
		}
		if s := f.Stats(); s.Busy != 14 || s.Waited != 20 {
			t.Errorf("%+v", s)
		}
	})
}

// Rate and concurrency together: a request that gets no permit gets its tokens back, and a request
// that waits for a token holds no permit during the wait.
func TestRateAndConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := limitRule(t, "r", "*", rules.By{}, 1, 3)
		rule.Limit.Concurrency = 1
		f := running(t, []rules.Rule{rule})
		ticket := letIn(t, f, search)
		for range 20 {
			if d, _ := f.Begin(search); d.Allowed || d.Reason != rules.ReasonBusy {
				t.Fatalf("%+v", d)
			}
		}
		ticket.End(Cost{})
		for range 2 { // the tokens that are left
			letIn(t, f, search).End(Cost{})
		}
		if d, _ := f.Begin(search); d.Allowed || d.Reason != rules.ReasonLimited {
			t.Errorf("%+v", d)
		}
	})
}

// The time that a request has waited for tokens counts towards its maximum wait.
func TestWaitsNoLongerInAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := waitRule(t, "r", rules.By{}, tenASecond, 1, time.Second)
		rule.Limit.Concurrency = 1
		f := running(t, []rules.Rule{rule})
		ticket := letIn(t, f, search)
		start := time.Now()
		if d, _ := f.Begin(search); d.Allowed || time.Since(start) != time.Second { // 100 ms for a token
			t.Errorf("after %v: %+v", time.Since(start), d)
		}
		ticket.End(Cost{})
	})
}

// A permit is returned however the handler ends.
func TestPermitComesBack(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "r", rules.By{}, 1, 0)}})
	gone := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		_ = rw.Flush()
	})
	mux.HandleFunc("/gone", func(_ http.ResponseWriter, r *http.Request) {
		close(gone)
		<-r.Context().Done()
	})
	mux.Handle("/ok", ok)
	server := httptest.NewServer(f.Handler(mux))
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	fetch := func(ctx context.Context, path string) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	free := func() bool { return f.Check(search).Allowed }
	if _, err := fetch(t.Context(), "/panic"); err == nil {
		t.Error("no error of a handler that aborts")
	}
	eventually(t, free)
	if code, err := fetch(t.Context(), "/hijack"); code != http.StatusNoContent || err != nil {
		t.Error(code, err)
	}
	eventually(t, free)
	ctx, hangUp := context.WithCancel(t.Context())
	go func() {
		<-gone
		if free() {
			t.Error("free while it is served")
		}
		hangUp()
	}()
	if _, err := fetch(ctx, "/gone"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	eventually(t, free)
	if code, err := fetch(t.Context(), "/ok"); code != http.StatusOK || err != nil {
		t.Error(code, err)
	}
}

// A client that hangs up while it waits leaves the line.
func TestGoneFromTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running(t, []rules.Rule{busyRule(t, "r", rules.By{}, 1, time.Minute)})
		ticket := letIn(t, f, search)
		ctx, cancel := context.WithCancel(t.Context())
		req := search
		req.Context = ctx
		done := make(chan rules.Decision)
		go func() {
			d, ticket := f.Begin(req)
			if ticket != nil {
				t.Error("a ticket for one that has gone")
			}
			done <- d
		}()
		synctest.Wait()
		cancel()
		if d := <-done; d.Allowed || d.Reason != rules.ReasonBusy || d.Rule != "r" {
			t.Errorf("%+v", d)
		}
		ticket.End(Cost{})
		letIn(t, f, search).End(Cost{})
		if s := f.Stats(); s.Gone != 1 || s.Busy != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A client that has already disconnected is not refused for that if there is nothing to wait for.
func TestGoneBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := search
	req.Context = ctx
	for _, opts := range [][]Option{nil, {WithShadow()}} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "r", rules.By{}, 1, 0)}}, opts...)
		letIn(t, f, req).End(Cost{})
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "r", rules.By{}, 1, time.Minute)}})
	if d, ticket := f.Begin(req); d.Allowed || d.Reason != rules.ReasonBusy || ticket != nil {
		t.Errorf("%+v", d)
	}
}

// Two rules with concurrency: a permit of the first is returned if the second has none, and no two
// requests wait for each other.
func TestPermitsOfManyRules(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "all", rules.By{}, 2, 0), busyRule(t, "each", byNames("q"), 1, 0)}})
	ticket := letIn(t, f, search)
	for range 10 {
		if d, _ := f.Begin(search); d.Allowed || d.Rule != "each" {
			t.Fatalf("%+v", d)
		}
	}
	other := letIn(t, f, get("GET /s", "/s", "q=2"))
	if d, _ := f.Begin(get("GET /s", "/s", "q=3")); d.Allowed || d.Rule != "all" {
		t.Errorf("%+v", d)
	}
	ticket.End(Cost{})
	other.End(Cost{})
}

// For a hot key the counter includes the requests that passed all rules.
func TestPermitsOfHotKeys(t *testing.T) {
	hot := hotRule(t, "hot", "*", byNames("q"), 1, 10)
	hot.Limit.Concurrency = 5
	for range 2 {
		testPermitsOfHotKeys(t, hot)
		hot.Limit = busyRule(t, "hot", byNames("q"), 5, 0).Limit // and no rate
	}
}

func testPermitsOfHotKeys(t *testing.T, hot rules.Rule) {
	t.Helper()
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hot, busyRule(t, "all", rules.By{}, 1, 0)}})
	f.heat(t, "hot GET /s?q=1")
	ticket := letIn(t, f, search)
	for range 3 {
		f.Begin(search)
	}
	if keys := f.HotKeys(); keys[0].Passed != 1 || keys[0].Refused != 3 {
		t.Errorf("%+v", keys)
	}
	ticket.End(Cost{})
}

// panicking is a custom semaphore that panics.
type panicking struct{}

func (panicking) Acquire(context.Context, string, semaphore.Request) (semaphore.Lease, rules.Decision, error) {
	panic("inside")
}

// A request that passes because of a panic keeps nothing that it was granted before.
func TestPanicGivesBack(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		limitRule(t, "rate", "*", rules.By{}, 1, 1), busyRule(t, "here", rules.By{}, 1, 0), exactly(busyRule(t, "all", rules.By{}, 1, 0), ""),
	}}, WithSemaphore(panicking{}))
	for range 3 {
		if d, ticket := f.Begin(search); !d.Allowed || d.Reason != rules.ReasonOpen || ticket != nil {
			t.Errorf("%+v", d)
		}
	}
	if n := f.Stats().Panics; n != 3 {
		t.Errorf("%d panics", n)
	}
}

// Requests with priority overtake the line, and a bucket keeps a reserve for them.
func TestPriority(t *testing.T) {
	first := &rules.Priority{Name: "tier", First: []string{"gold", "silver"}}
	t.Run("line", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rule := busyRule(t, "r", rules.By{}, 1, time.Minute)
			rule.Limit.Priority = first
			f := running(t, []rules.Rule{rule})
			ticket := letIn(t, f, search)
			var order []string
			var wg sync.WaitGroup
			for _, query := range []string{"", "tier=silver", "tier=gold", "tier=lead", "tier=gold&q=2"} {
				wg.Go(func() {
					_, ticket := f.Begin(get("GET /s", "/s", query))
					order = append(order, query) // one at a time
					ticket.End(Cost{})
				})
				synctest.Wait()
			}
			ticket.End(Cost{})
			wg.Wait()
			if want := []string{"tier=gold", "tier=gold&q=2", "tier=silver", "", "tier=lead"}; !slices.Equal(order, want) {
				t.Errorf("%q", order)
			}
		})
	})
	t.Run("of the path", func(t *testing.T) {
		rule := limitRule(t, "r", "GET /{tier}", rules.By{}, 1, 3)
		rule.Limit.Priority = &rules.Priority{Source: rules.Path, Name: "tier", First: first.First}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.Check(get("GET /{tier}", "/none", "tier=gold"))
		if d := f.Check(get("GET /{tier}", "/none", "tier=gold")); d.Allowed {
			t.Errorf("%+v: the query is not the path", d)
		}
		if d := f.Check(get("GET /{tier}", "/gold", "tier=none")); !d.Allowed {
			t.Errorf("%+v", d)
		}
	})
	t.Run("bucket", func(t *testing.T) {
		rule := limitRule(t, "r", "*", rules.By{}, 1, 9)
		rule.Limit.Priority = first
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		var passed []int
		for _, query := range []string{"tier=none", "tier=silver", "tier=gold"} {
			n := 0
			for f.Check(get("GET /s", "/s", query)).Allowed {
				n++
			}
			passed = append(passed, n)
		}
		if !slices.Equal(passed, []int{3, 3, 3}) { // of 9 two thirds are for silver and gold, one for gold
			t.Errorf("passed %v", passed)
		}
	})
}

func TestKeep(t *testing.T) {
	for _, burst := range []int64{1, 2, 3, 7, 100, 1 << 61} {
		for classes := 2; classes <= rules.MaxClasses; classes++ {
			last := int64(-1)
			for class := range classes {
				k := fleet.Reserve(burst, class, classes)
				if k < last || k < 0 || k >= burst {
					t.Errorf("class %d of %d leaves %d of %d", class, classes, k, burst)
				}
				last = k
			}
		}
	}
}

// A shadow rule with concurrency refuses no request.
func TestConcurrencyInShadow(t *testing.T) {
	rule := busyRule(t, "r", rules.By{}, 1, 0)
	rule.Limit.Mode = rules.ModeShadow
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	ticket := letIn(t, f, search)
	d, none := f.Begin(search)
	if !d.Allowed || d.Reason != rules.ReasonShadow || none != nil {
		t.Errorf("%+v, %v", d, none)
	}
	ticket.End(Cost{})
	if s := f.Stats(); s.Shadowed != 1 || s.Limited != 0 {
		t.Errorf("%+v", s)
	}
	all := newFixture(t, rules.Rules{Rules: []rules.Rule{busyRule(t, "r", rules.By{}, 1, time.Minute)}}, WithShadow())
	ticket = letIn(t, all, search)
	if d, _ := all.Begin(search); !d.Allowed || d.Reason != rules.ReasonShadow {
		t.Errorf("%+v", d)
	}
	ticket.End(Cost{})
}

// Costs and permits of one request end together.
func TestCostAndConcurrency(t *testing.T) {
	cost := limitRule(t, "cost", "*", rules.By{}, 1, 10)
	cost.Count, cost.Limit.Concurrency = rules.Units, 1
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{cost}})
	ticket := letIn(t, f, search)
	if d, _ := f.Begin(search); d.Allowed || d.Reason != rules.ReasonBusy {
		t.Errorf("%+v", d)
	}
	ticket.End(Cost{Units: 10})
	if d, _ := f.Begin(search); d.Allowed || d.Reason != rules.ReasonLimited {
		t.Errorf("%+v", d)
	}
	if n := f.Stats().Charged; n != 1 {
		t.Errorf("%d charged", n)
	}
}
