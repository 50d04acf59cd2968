package middleware

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func reload(tb testing.TB, f *fixture, ruleset ...rules.Rule) {
	tb.Helper()
	if err := f.Reload(&rules.Rules{Namespace: "test", Rules: ruleset}); err != nil {
		tb.Fatal(err)
	}
}

// Used tokens stay used when the rules change, as far as the shape of the rule allows.
func TestReloadKeepsState(t *testing.T) {
	hot := hotRule(t, "r", "*", byNames("q"), 1, 5)
	for name, rule := range map[string]rules.Rule{
		"single": limitRule(t, "r", "*", rules.By{}, 1, 5), "keyed": limitRule(t, "r", "*", byNames("q"), 1, 5), "hot": hot,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			if name == "hot" {
				f.heat(t, "r GET /s?q=1")
			}
			for range 3 {
				f.Check(search)
			}
			reload(t, f, rule) // nothing changed
			if d := f.Check(search); d.Remaining != 1 {
				t.Errorf("%+v, want 1 left", d)
			}
			more := rule
			more.Limit = limit(1, 8)
			reload(t, f, more)
			if d := f.Check(search); d.Remaining != 3 || d.Limit != 8 { // 5 of 8 are taken
				t.Errorf("%+v, want 3 left of 8", d)
			}
			window := rule
			window.Limit = limit(2, 2)
			window.Limit.Algorithm = rules.FixedWindow
			reload(t, f, window)
			if d := f.Check(search); d.Remaining != 1 || d.Limit != 2 { // another algorithm starts with its full quota
				t.Errorf("%+v, want 1 left of 2", d)
			}
			none := rule
			none.Limit = nil
			if name != "hot" {
				none = limitRule(t, "other", "GET /other", rules.By{}, 1, 1)
			}
			reload(t, f, none)
			if d := f.Check(search); d.Reason != rules.ReasonNone {
				t.Errorf("%+v, want no limit", d)
			}
		})
	}
}

// After a change to another algorithm or number of instances, and back, used and reserved tokens
// are not granted again.
func TestReloadToAndFro(t *testing.T) {
	hot := hotRule(t, "r", "*", byNames("q"), 1, 5)
	for name, rule := range map[string]rules.Rule{
		"single": limitRule(t, "r", "*", rules.By{}, 1, 5), "keyed": limitRule(t, "r", "*", byNames("q"), 1, 5), "hot": hot,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			if name == "hot" {
				f.heat(t, "r GET /s?q=1")
			}
			passes := func() (n int) {
				for f.Check(search).Allowed {
					n++
				}
				return n
			}
			window := rule
			window.Limit = limit(3, 3)
			window.Limit.Algorithm = rules.FixedWindow
			locked := rule
			locked.Limit = limit(1, 5)
			locked.Limit.Penalty = time.Millisecond
			for i, step := range []struct {
				rule rules.Rule
				want int
			}{{rule, 5}, {window, 3}, {rule, 0}, {window, 0}, {locked, 0}, {window, 0}, {rule, 0}} {
				reload(t, f, step.rule)
				if n := passes(); n != step.want {
					t.Errorf("step %d: %d passed, want %d", i, n, step.want)
				}
			}
		})
	}
}

// A request that holds a permit while the rules change returns it to its semaphore, once. A
// changed number applies at once.
func TestReloadWhileServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := running(t, []rules.Rule{busyRule(t, "r", rules.By{}, 2, time.Minute)})
		first, second := letIn(t, f, search), letIn(t, f, search)
		third := make(chan *Ticket)
		go func() {
			_, ticket := f.Begin(search)
			third <- ticket
		}()
		synctest.Wait() // in the line
		reload(t, f, busyRule(t, "r", rules.By{}, 1, 0))
		if d, _ := f.Begin(search); d.Allowed || d.Limit != 1 {
			t.Errorf("%+v", d)
		}
		first.End(Cost{})
		synctest.Wait()
		select {
		case <-third:
			t.Error("the line moved on: one is being served, as many as may be")
		default:
		}
		second.End(Cost{})
		(<-third).End(Cost{})
		ticket := letIn(t, f, search)
		if d, _ := f.Begin(search); d.Allowed {
			t.Errorf("%+v: a permit was given back twice", d)
		}
		// The rule is removed, and added again while the old one still serves a request.
		reload(t, f, limitRule(t, "other", "GET /other", rules.By{}, 1, 1))
		letInFree(t, f)
		reload(t, f, busyRule(t, "r", rules.By{}, 1, 0))
		if d, _ := f.Begin(search); d.Allowed {
			t.Errorf("%+v: a permit that is in use was granted again", d)
		}
		ticket.End(Cost{})
		letIn(t, f, search).End(Cost{})
		// The rule has no concurrency for a while.
		ticket = letIn(t, f, search)
		reload(t, f, limitRule(t, "r", "*", rules.By{}, 10, 10))
		letInFree(t, f)
		reload(t, f, busyRule(t, "r", rules.By{}, 1, 0))
		if d, _ := f.Begin(search); d.Allowed {
			t.Errorf("%+v: a permit that is in use was granted again", d)
		}
		ticket.End(Cost{})
		letIn(t, f, search).End(Cost{})
	})
}

// letInFree begins and ends a request that needs no permit.
func letInFree(t *testing.T, f *fixture) {
	t.Helper()
	if d, ticket := f.Begin(search); !d.Allowed || ticket != nil {
		t.Errorf("%+v, ticket %v", d, ticket)
	}
}

// A request is decided by the rules that it started with, even if others are loaded during the
// request, and nothing is lost. Run with -race.
func TestReloadUnderLoad(t *testing.T) {
	ruleset := func(n int64) []rules.Rule {
		busy := busyRule(t, "busy", byNames("q"), int(n), time.Minute)
		hot := hotRule(t, "hot", "*", byNames("q"), 3600*n, 1000*n)
		return []rules.Rule{busy, limitRule(t, "keyed", "*", byNames("q"), 3600*n, 1000*n), hot, limitRule(t, "single", "*", rules.By{}, 3600*n, 1000*n)}
	}
	f := newFixture(t, rules.Rules{Rules: ruleset(1)})
	f.heat(t, "hot GET /s?q=1")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				_, ticket := f.Begin(search)
				ticket.End(Cost{})
			}
		})
	}
	for i := range 50 {
		reload(t, f, ruleset(int64(i%3)+1)...)
		f.SetInstances(i % 4)
	}
	wg.Wait()
	reload(t, f, ruleset(1)...)
	letIn(t, f, search).End(Cost{}) // a single leak would show
	s := f.Stats()
	if s.Panics != 0 || s.Limited != 0 || s.Displaced != 0 {
		t.Errorf("%+v", s)
	}
	if left := f.rules.Load().byID("single").spec.single.FreshAfter(f.now); left != 801*time.Second {
		t.Errorf("%v of tokens are taken, want 801 s", left)
	}
}

// Rules that cannot be put in force are refused, and the old rules stay.
func TestReloadRefuses(t *testing.T) {
	hot := hotRule(t, "hot", "GET /s", byNames("q"), 1, 1)
	single := limitRule(t, "single", "*", rules.By{}, 1, 1)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hot, single}})
	for name, c := range map[string]struct {
		rules rules.Rules
		want  string
	}{
		"namespace": {rules.Rules{Namespace: "other", Rules: []rules.Rule{hot}}, "namespace"},
		"bad":       {rules.Rules{Rules: []rules.Rule{hot, hot}}, "hot"},
		"needs":     {rules.Rules{Rules: []rules.Rule{hot, exactly(single, "")}}, "WithBackend"},
	} {
		if c.rules.Namespace == "" {
			c.rules.Namespace = "test"
		}
		if err := f.Reload(&c.rules); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if err := f.Reload(nil); err == nil {
		t.Error("no rules are rules")
	}
	if d := f.Check(search); d.Rule != "single" {
		t.Errorf("%+v: the old rules are gone", d)
	}
	if got := f.keys(); !slices.Equal(got, []string{"hot GET /s?q=1"}) {
		t.Errorf("counted %q by the old rules", got)
	}
}

// The options of a removed rule are kept, and apply when the rule is added again.
func TestReloadKeepsOptions(t *testing.T) {
	rule := limitRule(t, "r", "*", rules.By{}, 1, 1)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithServe("r", ok),
		WithMatcher("r", func(*http.Request) (string, bool) { return "x", false }))
	h := f.Handler(ok)
	reload(t, f)
	serve(h, "GET", "/s")
	reload(t, f, rule)
	for _, want := range []int{200, 429} {
		if w := serve(h, "GET", "/s"); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
}

// Keys that lost their place stay counted, including those of removed rules.
func TestReloadKeepsDisplaced(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", byNames("q"), 1, 1)}}, WithMaxKeys(1))
	f.Check(search)
	f.Check(get("GET /s", "/s", "q=2"))
	if n := f.Stats().Displaced; n != 1 {
		t.Errorf("%d", n)
	}
	reload(t, f, limitRule(t, "other", "*", rules.By{}, 1, 1))
	if n := f.Stats().Displaced; n != 1 {
		t.Errorf("%d after the rules are gone", n)
	}
}

// When a rule gets hot or loses it, the tokens that a key took before count afterwards.
func TestReloadAddsAndRemovesHot(t *testing.T) {
	hot, keyed := hotRule(t, "r", "*", byNames("q"), 1, 5), limitRule(t, "r", "*", byNames("q"), 1, 5)
	for name, order := range map[string][]rules.Rule{"loses": {hot, keyed, hot}, "gets": {keyed, hot, keyed}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: order[:1]})
			f.heat(t, "r GET /s?q=1")
			left := int64(5)
			for i, rule := range order {
				reload(t, f, rule)
				if len(rule.Hot) == 0 && i > 0 {
					f.heat(t) // as the aggregator does when the rule has no threshold
				} else {
					f.heat(t, "r GET /s?q=1")
				}
				left--
				if d := f.Check(search); !d.Allowed || d.Remaining != left {
					t.Errorf("version %d: %+v, want %d left", i, d, left)
				}
			}
			for range left {
				f.Check(search)
			}
			if d := f.Check(search); d.Allowed {
				t.Errorf("%+v: more than 5 passed", d)
			}
		})
	}
}
