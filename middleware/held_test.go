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

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// autoRule returns a rule that finds keys by their cost and holds them.
func autoRule(tb testing.TB, id, pool string, names ...string) rules.Rule {
	r := hotRule(tb, id, "GET /s", byNames(names...), 1, 1)
	r.Count, r.Backend = rules.Millis, pool
	r.Hot = []rules.Threshold{rules.Threshold{Kind: rules.Cost, Rate: rules.CostRate}.WithDefaults()}
	r.Limit = &rules.Limit{Concurrency: rules.AutoConcurrency, Mode: rules.ModeLimit}
	return r
}

// holds makes exactly these members hot, and holds them to so many permits of the pool.
func (f *fixture) holds(tb testing.TB, pool string, permits int64, stage published.HoldStage, members ...string) {
	tb.Helper()
	replaceHot(f.hot, "", heldKeys(tb, pool, permits, stage, members...))
}

func heldKeys(tb testing.TB, pool string, permits int64, stage published.HoldStage, members ...string) []published.Hot {
	tb.Helper()
	hot := make([]published.Hot, len(members))
	for i, m := range members {
		key, ok := rules.ParseKey(m)
		if !ok {
			tb.Fatalf("%q is no member", m)
		}
		hot[i] = published.Hot{Key: key, Mode: rules.ModeLimit, Hold: &published.Hold{Pool: pool, Permits: permits, Stage: stage}}
	}
	return hot
}

func wantBusy(tb testing.TB, f *fixture, req Request) {
	tb.Helper()
	if d, ticket := f.Begin(req); d.Allowed || d.Reason != rules.ReasonBusy || d.RetryAfter <= 0 || ticket != nil {
		tb.Fatalf("%+v, ticket %v: want busy", d, ticket)
	}
}

// All held keys of a pool, of whatever rule, share its permits. Their number may change at any time.
func TestHeldKeysShareTheirPool(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{autoRule(t, "a", "db", "q"), autoRule(t, "b", "db", "p"), autoRule(t, "c", "", "z")}})
	of := func(query string) Request { return get("GET /s", "/s", query) }
	members := []string{"a GET /s?q=1", "a GET /s?q=2", "b GET /s?p=1"}
	f.holds(t, "db", 1, published.HoldTrial, members...)
	first := letIn(t, f, of("q=1"))
	wantBusy(t, f, of("q=1"))
	wantBusy(t, f, of("q=2"))
	wantBusy(t, f, of("p=1"))
	letIn(t, f, of("q=3")).End(Cost{}) // is not hot
	letIn(t, f, of("z=1")).End(Cost{}) // has another pool
	f.holds(t, "db", 2, published.HoldKept, members...)
	second := letIn(t, f, of("p=1"))
	wantBusy(t, f, of("q=2"))
	f.holds(t, "db", 1, published.HoldKept, members...)
	second.End(Cost{})
	wantBusy(t, f, of("q=2"))
	first.End(Cost{})
	letIn(t, f, of("q=2")).End(Cost{})
	if s := f.heldPermits.Stats(); s.Held != 0 {
		t.Errorf("%+v", s)
	}
}

// A request of several held keys of a pool takes one permit.
func TestHeldRequestTakesOnePermit(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{autoRule(t, "a", "db", "q"), autoRule(t, "b", "db", "p"), autoRule(t, "c", "db", "p", "q")}})
	f.holds(t, "db", 1, published.HoldKept, "a GET /s?q=1", "a GET /s?q=2", "b GET /s?p=1", "c GET /s?p=1&q=1")
	both := get("GET /s", "/s", "q=1&q=2&p=1")
	for range 2 {
		ticket := letIn(t, f, both)
		if s := f.heldPermits.Stats(); s.Held != 1 {
			t.Errorf("%+v", s)
		}
		wantBusy(t, f, ofQ("1"))
		ticket.End(Cost{})
	}
	for _, key := range f.HotKeys() {
		if key.Passed != 2 {
			t.Errorf("%v passed %d times, want 2", key.Key, key.Passed)
		}
	}
}

// Requests acquire the permits of pools in the same order, and before those of keys, so that they
// cannot wait for each other.
func TestHeldOrder(t *testing.T) {
	own := autoRule(t, "a", "", "q")
	own.Limit.Concurrency = 3
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{own, autoRule(t, "b", "y", "q"), autoRule(t, "c", "x", "q"), autoRule(t, "d", "y", "q")}})
	var hot []published.Hot
	for rule, pool := range map[string]string{"a": "a", "b": "y", "c": "x", "d": "y"} {
		hot = append(hot, published.Hot{Key: rules.Key{Rule: rule, Text: "GET /s?q=1"}, Mode: rules.ModeLimit, Hold: &published.Hold{Pool: pool, Permits: 1, Stage: published.HoldKept}})
	}
	replaceHot(f.hot, "", hot)
	in := ofQ("1")
	r := f.newRequest(&in, f.routeOf(&in), true)
	r.applyRules()
	var got []string
	for i := range r.pending.permits {
		got = append(got, r.pending.permits[i].rule.ID)
	}
	if want := []string{"c", "b", "d", "a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var d rules.Decision
	r.finish(&d).End(Cost{})
}

// With 0 permits, all requests of the key are refused at once, even if they could wait.
func TestHeldToNone(t *testing.T) {
	waits := autoRule(t, "r", "", "q")
	waits.Limit.Mode, waits.Limit.Wait = rules.ModeWait, time.Minute
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{waits}})
	f.holds(t, "r", 0, published.HoldTrial, "r GET /s?q=1")
	w := httptest.NewRecorder()
	f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was served") })).ServeHTTP(w, httptest.NewRequest("GET", "/s?q=1", nil))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	letIn(t, f, ofQ("2")).End(Cost{})
}

// With on_limit: wait, requests wait for the pool's permits.
func TestHeldWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := autoRule(t, "r", "", "q")
		waits.Limit.Mode, waits.Limit.Wait = rules.ModeWait, time.Second
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{waits}})
		f.holds(t, "r", 1, published.HoldKept, "r GET /s?q=1", "r GET /s?q=2")
		first := letIn(t, f, ofQ("1"))
		time.AfterFunc(700*time.Millisecond, func() { first.End(Cost{}) })
		start := time.Now()
		second := letIn(t, f, ofQ("2"))
		if waited := time.Since(start); waited != 700*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		wantBusy(t, f, ofQ("1"))
		second.End(Cost{})
	})
}

// A key that is not held needs no permit: it is hot by another threshold, only suspected, or held
// in a way of a later version.
func TestNotHeld(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{autoRule(t, "r", "", "q")}})
	for name, heat := range map[string]func(){
		"no hold":   func() { f.heat(t, "r GET /s?q=1") },
		"suspected": func() { f.holds(t, "r", 0, published.HoldSuspected, "r GET /s?q=1") },
		"unknown":   func() { f.holds(t, "r", 0, "later", "r GET /s?q=1") },
	} {
		heat()
		before := f.HotKeys()[0]
		letIn(t, f, ofQ("1")).End(Cost{})
		if after := f.HotKeys()[0]; after.Passed != before.Passed+1 || after.Refused != 0 {
			t.Errorf("%s: %+v", name, after)
		}
	}
}

// In shadow mode a request over the permits passes, and counts as one that would be refused.
func TestHeldShadow(t *testing.T) {
	shadow := autoRule(t, "r", "", "q")
	shadow.Limit.Mode = rules.ModeShadow
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{shadow}})
	f.holds(t, "r", 0, published.HoldKept, "r GET /s?q=1")
	want(t, f.Check(ofQ("1")), rules.Decision{Allowed: true, Reason: rules.ReasonShadow, Rule: "r"})
	if key := f.HotKeys()[0]; key.Passed != 0 || key.Refused != 1 {
		t.Errorf("%+v", key)
	}
}

// An exception with a number holds the key to that, and one that allows it to nothing.
func TestHeldExceptions(t *testing.T) {
	r := autoRule(t, "r", "", "q")
	r.Except = []rules.Exception{
		{Values: []rules.QueryMatch{{Name: "q", Value: "vip"}}, Action: rules.Allow},
		{Values: []rules.QueryMatch{{Name: "q", Value: "two"}}, Limit: &rules.Limit{Concurrency: 2, Mode: rules.ModeLimit}},
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{r}})
	f.holds(t, "r", 0, published.HoldKept, "r GET /s?q=vip", "r GET /s?q=two", "r GET /s?q=1", "r GET /s?q=allowed")
	f.control(t, [2]string{"allow", "r GET /s?q=allowed"}, [2]string{"pin", "r GET /s?q=pinned"})
	for _, value := range []string{"vip", "allowed", "pinned"} {
		if d := f.Check(ofQ(value)); !d.Allowed {
			t.Errorf("%s: %+v", value, d)
		}
	}
	wantBusy(t, f, ofQ("1"))
	first, second := letIn(t, f, ofQ("two")), letIn(t, f, ofQ("two"))
	wantBusy(t, f, ofQ("two"))
	first.End(Cost{})
	second.End(Cost{})
}

// namedSemaphore records the keys that it is asked for.
type namedSemaphore struct {
	semaphore.Acquirer
	mu   sync.Mutex
	keys []string
	err  error
}

func (s *namedSemaphore) Acquire(ctx context.Context, key string, ask semaphore.Request) (semaphore.Lease, rules.Decision, error) {
	s.mu.Lock()
	s.keys = append(s.keys, key)
	s.mu.Unlock()
	if s.err != nil {
		return semaphore.Lease{}, rules.Decision{}, s.err
	}
	return s.Acquirer.Acquire(ctx, key, ask)
}

// Instances share the permits by a semaphore, under the name of the pool. While it is unavailable,
// when_redis_is_away decides.
func TestHeldOverInstances(t *testing.T) {
	all := &namedSemaphore{Acquirer: semaphore.New(semaphore.Config{})}
	instance := func(away rules.OutagePolicy) *fixture {
		r := autoRule(t, "r", "db", "q")
		r.Limit.Outage = away
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{r}}, WithSemaphore(all))
		f.holds(t, "db", 1, published.HoldKept, "r GET /s?q=1", "r GET /s?q=2")
		return f
	}
	one, two := instance(""), instance("")
	ticket := letIn(t, one, ofQ("1"))
	wantBusy(t, two, ofQ("2"))
	ticket.End(Cost{})
	letIn(t, two, ofQ("2")).End(Cost{})
	if want := []string{"backend:db", "backend:db", "backend:db"}; !slices.Equal(all.keys, want) {
		t.Errorf("asked for %q", all.keys)
	}
	all.err = context.DeadlineExceeded
	ticket = letIn(t, one, ofQ("1"))
	wantBusy(t, one, ofQ("2"))
	letIn(t, two, ofQ("2")).End(Cost{})
	ticket.End(Cost{})
	if d, ticket := instance(rules.OutageOpen).Begin(ofQ("1")); !d.Allowed || d.Reason != rules.ReasonOpen {
		t.Errorf("open: %+v", d)
	} else {
		ticket.End(Cost{})
	}
	if d, _ := instance(rules.OutageClosed).Begin(ofQ("1")); d.Allowed || d.Reason != rules.ReasonUnavailable {
		t.Errorf("closed: %+v", d)
	}
}

// An explanation has what a request of a held key gets while the permits are in use.
func TestExplainHeld(t *testing.T) {
	ruleset := &rules.Rules{Namespace: "test", Rules: []rules.Rule{autoRule(t, "r", "", "q")}}
	for permits, within := range map[int64]bool{0: false, 2: true} {
		hot := []published.Hot{{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Mode: rules.ModeLimit, Hold: &published.Hold{Pool: "r", Permits: permits, Stage: published.HoldKept}}}
		x, err := Explain(ofQ("1"), ExplainConfig{Rules: ruleset, Hot: hot})
		if err != nil || x.Decision.Allowed != within || x.Over.Allowed || x.Over.Reason != rules.ReasonBusy {
			t.Errorf("%d permits: %+v, over %+v, %v", permits, x.Decision, x.Over, err)
		}
	}
}
