package middleware

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// ofFleet returns a rule whose hot keys have a limit over all instances.
func ofFleet(tb testing.TB, id string, quota rules.Quota) rules.Rule {
	r := hotRule(tb, id, "GET /s", byNames("q"), 1, 1)
	r.Limit = &rules.Limit{Quota: quota.WithDefaults(), Mode: rules.ModeLimit, Scope: rules.ScopeFleet}
	return r
}

// fleetGuard returns an instance whose limits are kept in Redis, and runs it.
func fleetGuard(t testing.TB, server *testenv.RedisServer, ruleset []rules.Rule, run bool) *fixture {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { client.Close() })
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: "shop", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	backend, err := limiter.NewFailover(store, limiter.FailoverConfig{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, rules.Rules{Rules: ruleset}, WithBackend(backend), WithClock(sinceEpoch(time.Now())))
	if run {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = f.Run(ctx)
		}()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
		for !f.fleet.Running() {
			time.Sleep(time.Millisecond)
		}
	}
	return f
}

// Limits of hot keys hold over all instances by default, and without Redis for each of them.
func TestFleetByDefault(t *testing.T) {
	server := testenv.Redis(t)
	rule := ofFleet(t, "r", rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 2})
	rule.Limit.Scope = ""
	admitted := func(f *fixture) (n int) {
		f.heat(t, "r GET /s?q=1")
		for range 5 {
			if f.Check(get("GET /s", "/s", "q=1")).Allowed {
				n++
			}
		}
		return n
	}
	all := []rules.Rule{rule}
	if n := admitted(fleetGuard(t, server, all, true)) + admitted(fleetGuard(t, server, all, true)); n != 2 {
		t.Errorf("two instances admitted %d, want 2", n)
	}
	if n := admitted(newFixture(t, rules.Rules{Rules: all})); n != 2 {
		t.Errorf("an instance without Redis admitted %d, want 2", n)
	}
	rule.Limit.Concurrency = 1 // for which fleetGuard gives no semaphore
	if n := admitted(fleetGuard(t, server, []rules.Rule{rule}, true)); n != 2 {
		t.Errorf("an instance without a semaphore admitted %d, want 2", n)
	}
}

// All instances together admit at most burst + rate × w of a hot key, nearly as much as that, and
// ask Redis for few of the requests.
func TestFleetLimit(t *testing.T) {
	const rate, burst, n = 2000, 1000, 3
	server := testenv.Redis(t)
	rule := ofFleet(t, "r", rules.Quota{Rate: rules.Rate{N: rate, Per: time.Second}, Burst: burst})
	var (
		all             sync.WaitGroup
		admitted, asked atomic.Int64
		guards          []*fixture
	)
	for range n {
		f := fleetGuard(t, server, []rules.Rule{rule}, true)
		f.heat(t, "r GET /s?q=1")
		guards = append(guards, f)
	}
	start := time.Now()
	const span = 2 * time.Second
	for i, f := range guards {
		for range 4 {
			all.Go(func() {
				for time.Since(start) < span {
					d := f.Check(get("GET /s", "/s", "q=1"))
					asked.Add(1)
					switch {
					case d.Allowed:
						admitted.Add(1)
					case d.Reason != rules.ReasonLimited || d.RetryAfter <= 0 || d.Limit != burst:
						t.Errorf("%+v", d)
						return
					}
					if i > 0 || !d.Allowed {
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
	}
	all.Wait()
	took := time.Since(start)
	bound := burst + int64(rate*took.Seconds()) + 1
	calls := uint64(0)
	for _, f := range guards {
		s := f.FleetStats()
		calls += s.Asks
		if s.Failures > 0 || f.Stats().Panics > 0 {
			t.Errorf("%+v, %+v", s, f.Stats())
		}
	}
	t.Logf("%d of %d requests admitted in %v, at most %d, by %d settlements", admitted.Load(), asked.Load(), took, bound, calls)
	if admitted.Load() > bound || admitted.Load() < bound/2 || calls > uint64(asked.Load())/2 {
		t.Errorf("%d of %d requests admitted, at most %d, by %d settlements", admitted.Load(), asked.Load(), bound, calls)
	}
}

// What a request takes of a stock goes back if another limit refuses it.
func TestFleetGivesBack(t *testing.T) {
	server := testenv.Redis(t)
	one := ofFleet(t, "one", rules.Quota{Rate: rules.Rate{N: 100, Per: time.Second}, Burst: 100})
	two := hotRule(t, "two", "GET /s", byNames("q"), 1, 1)
	two.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 1}, Mode: rules.ModeLimit}
	f := fleetGuard(t, server, []rules.Rule{one, two}, true)
	f.heat(t, "one GET /s?q=1", "two GET /s?q=1")
	admitted := 0
	for range 300 {
		if f.Check(get("GET /s", "/s", "q=1")).Allowed {
			admitted++
		}
	}
	if admitted != 1 {
		t.Fatalf("%d admitted, want 1", admitted)
	}
	f.heat(t, "one GET /s?q=1")
	for range 90 {
		if f.Check(get("GET /s", "/s", "q=1")).Allowed {
			admitted++
		}
	}
	if admitted < 90 { // in under a second, so that the permits are not earned
		t.Errorf("%d admitted of 91, although all permits but one were given back", admitted)
	}
}

// A limit that is too small for stocks, and a guard that does not run, asks Redis for each request. The bucket is the same.
func TestFleetAsksWhereStocksDoNotFit(t *testing.T) {
	server := testenv.Redis(t)
	small := ofFleet(t, "small", rules.Quota{Rate: rules.Rate{N: 5, Per: time.Minute}, Burst: 5})
	large := ofFleet(t, "large", rules.Quota{Rate: rules.Rate{N: 60, Per: time.Hour}, Burst: 3})
	for _, rule := range []rules.Rule{small, large} {
		admitted := 0
		for i := range 12 {
			f := fleetGuard(t, server, []rules.Rule{rule}, i%2 == 0)
			f.heat(t, rule.ID+" GET /s?q=1")
			d := f.Check(get("GET /s", "/s", "q=1"))
			if d.Reason == rules.ReasonWithin {
				admitted++
			} else if d.Reason != rules.ReasonLimited || d.Limit != rule.Limit.Burst {
				t.Errorf("%s: %+v", rule.ID, d)
			}
			if s := f.FleetStats(); s.Asks > 0 {
				t.Errorf("%s: %+v", rule.ID, s)
			}
		}
		if int64(admitted) != rule.Limit.Burst {
			t.Errorf("%s: %d admitted, want %d", rule.ID, admitted, rule.Limit.Burst)
		}
	}
}

// Costs that are known at a request's end are charged over the fleet.
func TestFleetCosts(t *testing.T) {
	server := testenv.Redis(t)
	rule := ofFleet(t, "r", rules.Quota{Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: 1000})
	rule.Count = rules.Units
	a, b := fleetGuard(t, server, []rules.Rule{rule}, true), fleetGuard(t, server, []rules.Rule{rule}, true)
	a.heat(t, "r GET /s?q=1")
	b.heat(t, "r GET /s?q=1")
	d, ticket := a.Begin(get("GET /s", "/s", "q=1"))
	if !d.Allowed || ticket == nil {
		t.Fatalf("%+v", d)
	}
	ticket.End(Cost{Units: 100_000})
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		d, ticket := b.Begin(get("GET /s", "/s", "q=1"))
		ticket.End(Cost{Units: 1})
		if !d.Allowed {
			break
		}
		if time.Now().After(end) {
			t.Fatal("what one instance has spent does not deny requests of another")
		}
	}
	if d := a.Check(get("GET /s", "/s", "q=1")); d.Allowed {
		t.Errorf("%+v", d)
	}
}

// While Redis is away, the policy decides.
func TestFleetOutagePolicies(t *testing.T) {
	for _, c := range []struct {
		outage rules.OutagePolicy
		reason rules.Reason
	}{{rules.OutageOpen, rules.ReasonOpen}, {rules.OutageClosed, rules.ReasonUnavailable}, {rules.OutageLocal, rules.ReasonLimited}} {
		t.Run(string(c.outage), func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t)
			rule := ofFleet(t, "r", rules.Quota{Rate: rules.Rate{N: 100, Per: time.Second}, Burst: 100})
			rule.Limit.Outage = c.outage
			f := fleetGuard(t, server, []rules.Rule{rule}, true)
			f.heat(t, "r GET /s?q=1")
			if d := f.Check(get("GET /s", "/s", "q=1")); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			server.Kill()
			passed := 0
			for end := time.Now().Add(10 * time.Second); ; {
				d := f.Check(get("GET /s", "/s", "q=1"))
				if d.Reason == c.reason && (c.outage != rules.OutageLocal || passed > 200) {
					break
				}
				if d.Allowed {
					passed++
				}
				if time.Now().After(end) {
					t.Fatalf("%+v after %d that passed", d, passed)
				}
			}
		})
	}
}

func BenchmarkFleetLimit(b *testing.B) {
	server := testenv.Redis(b)
	rule := ofFleet(b, "r", rules.Quota{Rate: rules.Rate{N: 10_000_000, Per: time.Second}, Burst: 10_000_000})
	f := fleetGuard(b, server, []rules.Rule{rule}, true)
	f.heat(b, "r GET /s?q=1")
	req := get("GET /s", "/s", "q=1")
	b.ReportAllocs()
	passed := 0
	for b.Loop() {
		if f.Check(req).Allowed {
			passed++
		}
	}
	b.ReportMetric(float64(passed)/float64(b.N), "passed")
}

// untilCalm runs a try up to five times, until it finds nothing wrong. A busy machine delays
// settlements, so that fewer requests pass than could.
func untilCalm(t *testing.T, try func(t *testing.T) (wrong string)) {
	t.Helper()
	var wrong string
	for range 5 {
		if wrong = try(t); wrong == "" {
			return
		}
		t.Log(wrong)
	}
	t.Error(wrong)
}

// Requests that find no permit held wait for their turn at their instance, which settles for all of
// them. Who would wait too long is refused at once, and who leaves takes nothing.
func TestFleetWaits(t *testing.T) {
	rule := ofFleet(t, "r", rules.Quota{Rate: rules.Rate{N: 500, Per: time.Second}, Burst: 500})
	rule.Limit.Mode, rule.Limit.Wait = rules.ModeWait, time.Second
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	untilCalm(t, func(t *testing.T) string {
		f := fleetGuard(t, testenv.Redis(t), []rules.Rule{rule}, true)
		f.heat(t, "r GET /s?q=1")
		start := time.Now()
		at, refused := passes(f, get("GET /s", "/s", "q=1"), 1300) // 500 at once, and about 500 within a second
		took, n := time.Since(start), len(at)
		if n > 501+int(500*took.Seconds()) {
			t.Fatalf("%d of 1300 passed in %v", n, took)
		}
		for _, d := range refused {
			if d.Reason != rules.ReasonLimited || d.RetryAfter <= 0 || d.Limit != 500 {
				t.Fatalf("%+v", d)
			}
		}
		req := get("GET /s", "/s", "q=1")
		req.Context = gone
		for range 100 {
			f.Check(req)
		}
		s, fleet := f.Stats(), f.FleetStats()
		if s.Waiting != 0 || s.Panics > 0 || fleet.Asks > 200 {
			t.Fatalf("%+v, %+v", s, fleet)
		}
		if n < 800 || s.Waited < 300 || took < 500*time.Millisecond || took > 2*time.Second {
			return fmt.Sprintf("%d of 1300 passed in %v, %d waited", n, took, s.Waited)
		}
		return ""
	})
}

// A permit that a request has waited for goes back if another limit refuses the request, and a
// request that is told how long to wait reserves its permit in Redis.
func TestFleetWaitsTogether(t *testing.T) {
	one := ofFleet(t, "one", rules.Quota{Rate: rules.Rate{N: 500, Per: time.Second}, Burst: 500})
	one.Limit.Mode, one.Limit.Wait = rules.ModeWait, time.Second
	two := hotRule(t, "two", "GET /s", byNames("q"), 1, 1)
	two.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 1}, Mode: rules.ModeLimit}
	untilCalm(t, func(t *testing.T) string {
		f := fleetGuard(t, testenv.Redis(t), []rules.Rule{one, two}, true)
		f.heat(t, "one GET /s?q=1", "two GET /s?q=1")
		if _, refused := passes(f, get("GET /s", "/s", "q=1"), 2000); len(refused) != 1999 {
			return fmt.Sprintf("%d refused of 2000 that the other limit refuses", len(refused))
		}
		f.heat(t, "one GET /s?q=1")
		if at, _ := passes(f, get("GET /s", "/s", "q=1"), 400); len(at) != 400 || at[399] > 900*time.Millisecond {
			return fmt.Sprintf("%d passed, although nearly all permits were given back", len(at))
		}
		req := get("GET /s", "/s", "q=1")
		req.NoWait = true
		var delay time.Duration
		for range 1000 {
			delay = max(delay, f.Check(req).Delay)
		}
		if delay < 100*time.Millisecond {
			return fmt.Sprintf("requests that do not wait here are told to wait at most %v", delay)
		}
		return ""
	})
}

// Requests of low priority cannot take the reserve of the others, nearly without calls.
func TestFleetPriority(t *testing.T) {
	rule := ofFleet(t, "r", rules.Quota{Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: 1000})
	rule.Limit.Priority = &rules.Priority{Name: "tier", First: []string{"gold"}}
	untilCalm(t, func(t *testing.T) string {
		f := fleetGuard(t, testenv.Redis(t), []rules.Rule{rule}, true)
		f.heat(t, "r GET /s?q=1")
		start, low := time.Now(), 0
		for range 3000 {
			if f.Check(get("GET /s", "/s", "q=1&tier=tin")).Allowed {
				low++
			}
		}
		took := time.Since(start)
		gold, _ := passes(f, get("GET /s", "/s", "q=1&tier=gold"), 480)
		if low > 501+int(1000*took.Seconds()) {
			t.Fatalf("%d of low priority within %v", low, took)
		}
		if s := f.FleetStats(); s.Asks > 200 || f.Stats().Panics > 0 {
			t.Fatalf("%+v, %+v", s, f.Stats())
		}
		if low < 400 || len(gold) < 400 { // some permits are held for low priority
			return fmt.Sprintf("%d of low priority within %v, and %d of 480 of high priority after them", low, took, len(gold))
		}
		return ""
	})
}
