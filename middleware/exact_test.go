package middleware

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// shared is a backend that instances share, and that records its calls.
type shared struct {
	*limiter.Memory
	mu       sync.Mutex
	calls    [][]limiter.Op
	err      error // if set, the backend is unavailable
	together bool  // it knows Together
}

func newShared(tb testing.TB) *shared {
	tb.Helper()
	m, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return &shared{Memory: m}
}

func (s *shared) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	var results [1]limiter.Result
	err := s.DoAll(ctx, []limiter.Op{op}, results[:])
	return results[0], err
}

func (s *shared) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.calls = append(s.calls, slices.Clone(ops))
	ctx = context.WithoutCancel(ctx) // on a busy machine 30 ms are nothing
	if s.together {
		return s.Memory.DoAll(ctx, ops, results)
	}
	for i := range ops {
		if results[i], err = s.Memory.Do(ctx, ops[i]); err != nil {
			return err
		}
	}
	return nil
}

// asked returns the operations of the calls since the last time, by name, key and kind.
func (s *shared) asked() (calls [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ops := range s.calls {
		var texts []string
		for _, op := range ops {
			texts = append(texts, op.Name+" "+op.Key+" "+[]string{"take", "peek", "at most", "reserve", "charge", "return"}[op.Kind])
		}
		calls = append(calls, texts)
	}
	s.calls = nil
	return calls
}

// quotaOf returns the quota with which the backend was last asked for a limit.
func (s *shared) quotaOf(t *testing.T, name string) *rules.Quota {
	t.Helper()
	for _, ops := range s.calls {
		for _, op := range ops {
			if op.Name == name {
				return op.Quota
			}
		}
	}
	t.Fatalf("%s was not asked", name)
	return nil
}

func (s *shared) setErr(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func exactly(r rules.Rule, away rules.OutagePolicy) rules.Rule {
	l := *r.Limit
	l.Scope, l.Outage = rules.ScopeExact, away
	r.Limit = &l
	return r
}

func wantCalls(t *testing.T, s *shared, want ...[]string) {
	t.Helper()
	if got := s.asked(); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("asked %q,\nwant  %q", got, want)
	}
}

// Everything that a request needs from Redis is asked in one call, after the limits of this
// instance. If one limit denies, it is all returned. A rule with hot keys asks only about the hot
// ones.
func TestExact(t *testing.T) {
	back := newShared(t)
	ruleset := []rules.Rule{
		limitRule(t, "here", "*", byNames("q"), 1, 10),
		exactly(limitRule(t, "all", "*", rules.By{}, 1, 100), ""),
		exactly(limitRule(t, "key", "*", byNames("q"), 1, 3), ""),
		exactly(hotRule(t, "hot", "*", byNames("q"), 1, 2), ""),
	}
	two := [2]*fixture{newFixture(t, rules.Rules{Rules: ruleset}, WithBackend(back)), newFixture(t, rules.Rules{Rules: ruleset}, WithBackend(back))}
	d := two[0].Check(search)
	if !d.Allowed || d.Limit != 3 || d.Remaining != 2 || d.Rule != "key" {
		t.Errorf("%+v, want the tightest told", d)
	}
	wantCalls(t, back, []string{"all * take", "key GET /s?q=1 take"})
	two[1].heat(t, "hot GET /s?q=1")
	two[1].Check(search)
	wantCalls(t, back, []string{"all * take", "key GET /s?q=1 take", "hot GET /s?q=1 take"})
	two[0].Check(search)
	back.asked()
	d = two[1].Check(search) // the fourth of 3, whatever the instance
	if d.Allowed || d.Rule != "key" || d.RetryAfter == 0 {
		t.Errorf("%+v", d)
	}
	wantCalls(t, back,
		[]string{"all * take", "key GET /s?q=1 take", "hot GET /s?q=1 take"},
		[]string{"all * return", "hot GET /s?q=1 return"})
	if keys := two[1].HotKeys(); keys[0].Passed != 1 || keys[0].Refused != 1 {
		t.Errorf("%+v", keys)
	}
	here := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "here", "*", rules.By{}, 1, 1), ruleset[1]}}, WithBackend(back))
	here.Check(search)
	back.asked()
	if d := here.Check(search); d.Allowed || d.Rule != "here" {
		t.Errorf("%+v", d)
	}
	wantCalls(t, back) // denied here, Redis is not asked
}

// A backend that knows Together takes nothing for a request that one limit refuses, so nothing has
// to be returned. A limit in shadow mode refuses nothing there either.
func TestExactTogether(t *testing.T) {
	back := newShared(t)
	back.together = true
	shadow := exactly(limitRule(t, "shadow", "*", rules.By{}, 1, 1), "")
	shadow.Limit.Mode = rules.ModeShadow
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		exactly(limitRule(t, "all", "*", rules.By{}, 1, 100), ""),
		exactly(hotRule(t, "hot", "*", byNames("q"), 1, 50), ""),
		shadow,
		exactly(limitRule(t, "key", "*", byNames("q"), 1, 3), ""),
	}}, WithBackend(back))
	f.heat(t, "hot GET /s?q=1")
	for i := range 3 {
		if d := f.Check(search); !d.Allowed {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	back.asked()
	for range 5 {
		if d := f.Check(search); d.Allowed || d.Rule != "key" || d.RetryAfter == 0 {
			t.Errorf("%+v", d)
		}
	}
	wantCalls(t, back, []string{"all * take", "hot GET /s?q=1 take", "key GET /s?q=1 take"}) // then it is known, as is shadow
	if keys := f.HotKeys(); keys[0].Passed != 3 || keys[0].Refused != 5 {
		t.Errorf("%+v", keys)
	}
	if d := f.Check(get("GET /s", "/s", "q=2")); !d.Allowed || d.Rule != "key" || d.Remaining != 2 {
		t.Errorf("%+v", d)
	}
	if d, _ := back.Memory.Do(t.Context(), limiter.Op{Quota: back.quotaOf(t, "all"), Name: "all", Key: "*", Request: limiter.Request{Kind: limiter.Peek}}); d.Remaining != 96 {
		t.Errorf("%+v, want 96 left after 4 requests that passed", d)
	}
}

// Waiting and priority are applied by Redis as well, and a client that disconnects returns its
// tokens.
func TestExactWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := newShared(t)
		rule := exactly(waitRule(t, "r", rules.By{}, tenASecond, 2, time.Second), "")
		rule.Limit.Priority = &rules.Priority{Name: "tier", First: []string{"gold"}}
		f := running(t, []rules.Rule{rule}, WithBackend(back))
		gold := get("GET /s", "/s", "tier=gold")
		start := time.Now()
		f.Check(gold)
		f.Check(gold)
		f.Check(gold) // due in 100 ms
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("passed after %v", took)
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, leave)
		back.asked()
		gold.Context = ctx
		if d := f.Check(gold); d.Allowed {
			t.Errorf("%+v", d)
		}
		wantCalls(t, back, []string{"r * reserve"}, []string{"r * return"})
		start = time.Now()
		f.Check(search) // one of two reservations was returned, after 50 ms
		if took := time.Since(start); took != 150*time.Millisecond {
			t.Errorf("passed after %v", took)
		}
	})
}

// While Redis is unavailable each limit follows its outage policy.
func TestExactAway(t *testing.T) {
	for away, want := range map[rules.OutagePolicy]rules.Decision{
		"":                 {Allowed: true, Reason: rules.ReasonWithin, Limit: 2, Remaining: 1, Rule: "r"}, // half of 4
		rules.OutageLocal:  {Allowed: true, Reason: rules.ReasonWithin, Limit: 2, Remaining: 1, Rule: "r"},
		rules.OutageOpen:   {Allowed: true, Reason: rules.ReasonOpen, Rule: "r"},
		rules.OutageClosed: {Reason: rules.ReasonUnavailable, Rule: "r"},
	} {
		t.Run(string(away), func(t *testing.T) {
			back := newShared(t)
			back.setErr(errors.New("no route to host"))
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{exactly(limitRule(t, "r", "*", rules.By{}, 1, 4), away)}}, WithBackend(back))
			f.SetInstances(2)
			d := f.Check(search)
			d.ResetAfter = 0
			if !d.Allowed {
				if d.RetryAfter <= 0 {
					t.Errorf("%+v", d)
				}
				d.RetryAfter, d.Limit = 0, 0
			}
			if d = ofLimits(t, d); d != want {
				t.Errorf("%+v, want %+v", d, want)
			}
			if s := f.Stats(); (s.Unavailable == 1) != (away == rules.OutageClosed) || s.Unavailable != s.Limited {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Limits with different outage policies are asked for in one call, and one that denies undoes all.
func TestExactAwayMixed(t *testing.T) {
	back := newShared(t)
	ruleset := rules.Rules{Rules: []rules.Rule{
		exactly(limitRule(t, "open", "*", rules.By{}, 1, 4), rules.OutageOpen),
		exactly(limitRule(t, "local", "*", rules.By{}, 1, 4), rules.OutageLocal),
		exactly(limitRule(t, "closed", "*", rules.By{}, 1, 1), rules.OutageClosed),
	}}
	f := newFixture(t, ruleset, WithBackend(back))
	f.Check(search)
	wantCalls(t, back, []string{"open * take", "local * take", "closed * take"})
	if d := f.Check(search); d.Allowed || d.Rule != "closed" {
		t.Errorf("%+v", d)
	}
	wantCalls(t, back, []string{"open * take", "local * take", "closed * take"}, []string{"open * return", "local * return"})
	if d := f.Check(search); d.Allowed || d.Rule != "closed" {
		t.Errorf("%+v", d)
	}
	wantCalls(t, back) // it is known to be denied
	back.setErr(errors.New("gone"))
	if d := newFixture(t, ruleset, WithBackend(back)).Check(search); d.Allowed || d.Reason != rules.ReasonUnavailable || d.Rule != "closed" {
		t.Errorf("%+v", d)
	}
}

// A backend that has recovered is asked again.
func TestExactIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := newShared(t)
		f := running(t, []rules.Rule{exactly(limitRule(t, "r", "*", rules.By{}, 1, 4), rules.OutageClosed)}, WithBackend(back))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		back.setErr(errors.New("gone"))
		if f.Check(search).Allowed {
			t.Error("passed")
		}
		time.Sleep(10 * time.Second)
		back.setErr(nil)
		time.Sleep(10 * time.Second)
		if d := f.Check(search); !d.Allowed {
			t.Errorf("%+v", d)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A backend never decides limits that it does not support. This is logged once, and counted.
func TestExactUnsupported(t *testing.T) {
	for away, passed := range map[rules.OutagePolicy]bool{rules.OutageLocal: true, rules.OutageClosed: false} {
		back := newShared(t)
		back.setErr(limiter.ErrUnsupported)
		var log bytes.Buffer
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{exactly(limitRule(t, "r", "*", rules.By{}, 1, 4), away)}},
			WithBackend(back), WithLog(slog.New(slog.NewTextHandler(&log, nil))))
		for range 3 {
			if d := f.Check(search); d.Allowed != passed {
				t.Errorf("%s: %+v", away, d)
			}
		}
		if n := f.Stats().Undecided; n != 3 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%d undecided: %s", n, &log)
		}
	}
}

// Run without a backend has nothing to do, and ends.
func TestRunWithoutBackend(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 1)}})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := f.Run(ctx); err != nil {
		t.Error(err)
	}
}

// failing is a semaphore that is unavailable.
type failing struct{}

func (failing) Acquire(context.Context, string, semaphore.Request) (semaphore.Lease, rules.Decision, error) {
	return semaphore.Lease{}, rules.Decision{}, errors.New("no route to host")
}

// Exact concurrency spans all instances. While its semaphore is unavailable the limit's outage
// policy applies.
func TestExactConcurrency(t *testing.T) {
	rule := exactly(busyRule(t, "r", byNames("q"), 2, 0), "")
	all := semaphore.New(semaphore.Config{})
	one := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithSemaphore(all))
	two := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithSemaphore(all))
	first, second := letIn(t, one, search), letIn(t, two, search)
	if d, _ := one.Begin(search); d.Allowed || d.Reason != rules.ReasonBusy {
		t.Errorf("%+v", d)
	}
	first.End(Cost{})
	second.End(Cost{})
	for away, passed := range map[rules.OutagePolicy]int{rules.OutageLocal: 1, rules.OutageOpen: 5, rules.OutageClosed: 0} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{exactly(rule, away)}}, WithSemaphore(failing{}))
		f.SetInstances(2)
		n := 0
		for range 5 {
			if d, _ := f.Begin(search); d.Allowed {
				n++
			} else if want := map[rules.OutagePolicy]rules.Reason{rules.OutageLocal: rules.ReasonBusy, rules.OutageClosed: rules.ReasonUnavailable}[away]; d.Reason != want {
				t.Errorf("%s: %+v", away, d)
			}
		}
		if n != passed {
			t.Errorf("%s: %d passed, want %d", away, n, passed)
		}
	}
}

// New fails if the rules need something that the program does not provide.
func TestNewNeeds(t *testing.T) {
	custom := limitRule(t, "r", "*", rules.By{}, 1, 1)
	custom.Limit.Algorithm = "x_mine"
	hotCustom := hotRule(t, "r", "*", byAll, 1, 1)
	hotCustom.Limit.Algorithm = "x_mine"
	except := hotRule(t, "r", "*", byAll, 1, 1)
	except.Except = []rules.Exception{{Values: is("q", "1"), Limit: exactly(custom, "").Limit}}
	plain := limitRule(t, "r", "*", rules.By{}, 1, 1)
	for name, c := range map[string]struct {
		rule rules.Rule
		opts []Option
		want string
	}{
		"backend":   {exactly(plain, ""), nil, `rule "r": limit.scope fleet or exact: the guard has no backend: give one by WithBackend`},
		"semaphore": {exactly(busyRule(t, "r", rules.By{}, 1, 0), ""), nil, `rule "r": limit.scope fleet or exact with concurrency: the guard has no semaphore: give one by WithSemaphore`},
		"algorithm": {custom, nil, `rule "r": limit.algorithm "x_mine": the guard has none of this name: give it by WithAlgorithm`},
		"of hot":    {hotCustom, nil, `rule "r": limit.algorithm "x_mine": the guard has none of this name: give it by WithAlgorithm`},
		"except":    {except, nil, `rule "r": exception 1: limit.algorithm "x_mine": the guard has none of this name: give it by WithAlgorithm`},
		"matcher":   {plain, []Option{WithMatcher("q", nil)}, `WithMatcher: there is no rule "q"`},
		"serve":     {plain, []Option{WithServe("q", ok)}, `WithServe: there is no rule "q"`},
	} {
		_, err := New(&rules.Rules{Namespace: "test", Rules: []rules.Rule{c.rule}}, newFixture(t, rules.Rules{Rules: []rules.Rule{plain}}).counts, c.opts...)
		if err == nil || err.Error() != "middleware: "+c.want {
			t.Errorf("%s: %v,\nwant middleware: %s", name, err, c.want)
		}
	}
}
