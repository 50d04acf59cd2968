package middleware

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// tokens takes tokens until a request is refused, and returns how many requests passed.
func tokens(f *fixture, req Request) (n int) {
	for n < 1000 && f.Check(req).Allowed {
		n++
	}
	return n
}

func want(t *testing.T, got, want rules.Decision) {
	t.Helper()
	got.ResetAfter = 0 // the oracle knows it
	if got = ofLimits(t, got); got != want {
		t.Errorf("decided %+v,\nwant    %+v", got, want)
	}
}

// ofLimits returns the part of a decision that its limits determine. It checks that a refused
// client is asked to back off, in whole seconds, until a retry can pass.
func ofLimits(t interface{ Errorf(string, ...any) }, d rules.Decision) rules.Decision {
	if d.Backoff < 0 || d.Backoff%time.Second != 0 || d.Backoff > 0 && d.Backoff < d.RetryAfter || d.Backoff > 0 && d.Allowed {
		t.Errorf("to come back after %v: %+v", d.Backoff, d)
	}
	d.Backoff, d.From = 0, nil
	return d
}

var search = get("GET /s", "/s", "q=1")

func TestNothingToSay(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "GET /other", rules.By{}, 1, 1)}})
	want(t, f.Check(search), rules.Decision{Allowed: true})
}

func TestOneBucket(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "GET /s", rules.By{}, 3600, 2)}})
	want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 2, Remaining: 1, Rule: "r"})
	want(t, f.Check(get("GET /s", "/s", "q=2")), rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 2, Rule: "r"})
	want(t, f.Check(search), rules.Decision{Reason: rules.ReasonLimited, Limit: 2, RetryAfter: time.Second, Rule: "r"})
	f.now += 400 * time.Millisecond
	if d := f.Check(search); d.Allowed || d.RetryAfter != 600*time.Millisecond {
		t.Errorf("after 400 ms: %+v", d)
	}
	f.now += 600 * time.Millisecond
	if d := f.Check(search); !d.Allowed {
		t.Errorf("after its wait: %+v", d)
	}
	if s := f.Stats(); s.Limited != 2 || len(f.keyCounts()) != 0 {
		t.Errorf("%+v, want 2 limited, nothing counted", s)
	}
}

func TestBucketForEachKey(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "GET /s", byNames("q"), 1, 3)}})
	if n := tokens(f, search); n != 3 {
		t.Errorf("q=1 got %d", n)
	}
	if n := tokens(f, get("GET /s", "/s", "q=2&page=9")); n != 3 {
		t.Errorf("q=2 got %d", n)
	}
	if n := tokens(f, get("GET /s", "/s", "page=9")); n != 1000 {
		t.Errorf("no key, and yet a limit after %d", n)
	}
}

// A key without a place in the table is limited together with the others.
func TestTableOfKeysIsFull(t *testing.T) {
	f := newFixture(t, rules.Rules{LimitKeys: 1, Rules: []rules.Rule{limitRule(t, "r", "GET /s", byNames("q"), 1, 3)}})
	for i := range 20 {
		if n := tokens(f, get("GET /s", "/s", fmt.Sprint("q=", i))); n > 3 || n < 1 {
			t.Errorf("q=%d got %d", i, n)
		}
	}
	for i := range 20 {
		if d := f.Check(get("GET /s", "/s", fmt.Sprint("q=", i))); d.Allowed {
			t.Errorf("q=%d again: %+v", i, d)
		}
	}
	stats := f.Stats()
	if n := f.Displaced()["r"]; stats.Displaced < 19 || stats.Inherited < 19 || n != stats.Displaced {
		t.Errorf("%+v, %d of the rule", stats, n)
	}
}

// A limit whose table was full is logged once.
func TestFullTableIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		f := newFixture(t, rules.Rules{LimitKeys: 1, Rules: []rules.Rule{
			limitRule(t, "full", "GET /s", byNames("q"), 1, 3), limitRule(t, "roomy", "GET /s", byNames("page"), 1, 3),
		}}, WithLog(slog.New(slog.NewTextHandler(&lines, nil))))
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { _ = f.Run(ctx) })
		for i := range 20 {
			f.Check(get("GET /s", "/s", fmt.Sprint("q=", i)))
			time.Sleep(fullEvery)
		}
		cancel()
		done.Wait()
		if text := lines.String(); strings.Count(text, "max_keys=1") != 1 || !strings.Contains(text, "rule=full") {
			t.Error(text)
		}
	})
}

// All matching rules apply and one denial denies. The longest wait is reported, and the tokens of
// the other rules are returned exactly.
func TestAllApply(t *testing.T) {
	only := func(id string) Request { return get("GET /only/"+id, "/only/"+id, "q=1") }
	slow := limitRule(t, "slow", "GET /s", rules.By{}, 1, 1)
	ruleset := rules.Rules{Rules: []rules.Rule{
		limitRule(t, "a", "*", rules.By{}, 60, 10),
		limitRule(t, "each", "*", byEach, 60, 10),
		limitRule(t, "names", "*", byNames("q"), 60, 10),
		hotRule(t, "hot", "*", byNames("q"), 60, 10),
		limitRule(t, "quick", "GET /s", rules.By{}, 60, 1),
		slow,
		limitRule(t, "z", "*", rules.By{}, 60, 10),
	}}
	ruleset.Rules[3].ParamsOnly = true // the same key on both routes
	ruleset.Rules[2].ParamsOnly = true
	ruleset.Rules[1].ParamsOnly = true
	f := newFixture(t, ruleset)
	f.heat(t, "hot q=1")

	d := f.Check(search)
	if !d.Allowed || d.Limit != 1 || d.Remaining != 0 {
		t.Errorf("%+v, want the tightest limit told", d)
	}
	for range 50 {
		want(t, f.Check(search), rules.Decision{Reason: rules.ReasonLimited, Limit: 1, RetryAfter: time.Hour, Rule: "slow"})
	}
	// Each has 1 of 10 taken, so a single leak would show.
	if n := tokens(f, only("a")); n != 9 {
		t.Errorf("%d tokens are left, want 9", n)
	}
	if s := f.Stats(); s.Limited != 51 {
		t.Errorf("%d limited, want 51", s.Limited)
	}
	hot := f.HotKeys()
	if len(hot) != 1 || hot[0].Passed != 10 || hot[0].Refused != 51 {
		t.Errorf("hot keys %+v, want 10 passed, 51 refused, whoever refused them", hot)
	}
	if n := f.keyCounts()["hot q=1"]; n != 61 {
		t.Errorf("counted %d, want all 61, refused ones too", n)
	}
}

// A single rule can take several tokens, and returns them as well.
func TestEachGivesBack(t *testing.T) {
	for name, rule := range map[string]rules.Rule{
		"keys": limitRule(t, "r", "GET /s", byEach, 1, 5),
		"hot":  hotRule(t, "r", "GET /s", byEach, 1, 5),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			f.heat(t, "r GET /s?a=1", "r GET /s?b=1")
			if n := tokens(f, get("GET /s", "/s", "b=1")); n != 5 {
				t.Fatalf("b got %d", n)
			}
			for range 20 { // a=1 allows, b=1 does not
				if d := f.Check(get("GET /s", "/s", "a=1&b=1")); d.Allowed {
					t.Fatalf("%+v", d)
				}
			}
			if n := tokens(f, get("GET /s", "/s", "a=1")); n != 5 {
				t.Errorf("a has %d tokens left of 5", n)
			}
		})
	}
}

// A request with two hot keys is limited by each.
func TestTwoHotKeys(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "q", "GET /s", byNames("q"), 1, 3),
		hotRule(t, "user", "GET /s", byNames("user"), 1, 5),
	}})
	f.heat(t, "q GET /s?q=1", "user GET /s?user=7")
	both := get("GET /s", "/s", "q=1&user=7")
	if n := tokens(f, both); n != 3 {
		t.Errorf("%d passed, want what the tighter key allows", n)
	}
	if n := tokens(f, get("GET /s", "/s", "q=2&user=7")); n != 2 {
		t.Errorf("the user has %d left, want 2", n)
	}
	if d := f.Check(both); d.Allowed {
		t.Error("both are empty, and it passes")
	}
	if n := tokens(f, get("GET /s", "/s", "q=2&user=8")); n != 1000 {
		t.Errorf("a request with no hot key was refused after %d", n)
	}
}

func TestEvaluateFirst(t *testing.T) {
	ruleset := rules.Rules{Evaluate: rules.EvaluateFirst, Rules: []rules.Rule{
		limitRule(t, "one", "GET /s", rules.By{}, 1, 5),
		ignoreRule(t, "two", "GET /s"),
		limitRule(t, "three", "*", rules.By{}, 1, 2),
	}}
	ruleset.Rules[0].Match.Query = []rules.QueryMatch{{Name: "q", Value: "1"}}
	f := newFixture(t, ruleset)
	if n := tokens(f, search); n != 5 {
		t.Errorf("%d passed by the first rule, want 5", n)
	}
	want(t, f.Check(get("GET /s", "/s", "q=2")), rules.Decision{Allowed: true, Reason: rules.ReasonIgnored, Rule: "two"})
	if n := tokens(f, get("GET /t", "/t", "")); n != 2 {
		t.Errorf("%d passed by the third rule, want 2", n)
	}
}

// An ignored request is ignored wherever the rule stands, and takes no tokens.
func TestIgnore(t *testing.T) {
	ruleset := rules.Rules{DenyNoMatch: true, Rules: []rules.Rule{
		limitRule(t, "a", "*", rules.By{}, 1, 2),
		hotRule(t, "b", "*", byAll, 1, 1),
		ignoreRule(t, "probe", "GET /s"),
	}}
	ruleset.Rules[2].Match.Query = []rules.QueryMatch{{Name: "probe", Value: "*"}}
	f := newFixture(t, ruleset)
	for _, pattern := range []string{"GET /s", ""} {
		for range 5 {
			want(t, f.Check(get(pattern, "/s", "probe&q=1")), rules.Decision{Allowed: true, Reason: rules.ReasonIgnored, Rule: "probe"})
		}
	}
	if counts := f.keyCounts(); len(counts) != 0 {
		t.Errorf("counted %v", counts)
	}
	if n := tokens(f, search); n != 2 {
		t.Errorf("%d tokens were left, want 2", n)
	}
}

func TestNoMatch(t *testing.T) {
	ruleset := rules.Rules{DenyNoMatch: true, Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 0, 0)}}
	f := newFixture(t, ruleset)
	want(t, f.Check(get("GET /t", "/t", "")), rules.Decision{Reason: rules.ReasonNoMatch})
	want(t, f.Check(get("", "/t", "")), rules.Decision{Reason: rules.ReasonNoMatch})
	want(t, f.Check(get("GET /s", "/s", "x=1")), rules.Decision{Allowed: true}) // matches, though it makes no key
	if s := f.Stats(); s.Limited != 2 {
		t.Errorf("%+v", s)
	}
	f = newFixture(t, ruleset, WithShadow())
	want(t, f.Check(get("GET /t", "/t", "")), rules.Decision{Allowed: true, Reason: rules.ReasonShadow})
	if s := f.Stats(); s.Limited != 0 || s.Shadowed != 1 {
		t.Errorf("%+v", s)
	}
}

func TestMatchQuery(t *testing.T) {
	cases := []struct {
		value, query string
		want         bool
	}{
		{"1", "q=1", true}, {"1", "q=2", false}, {"1", "q=2&q=1", true}, {"1", "Q=1", false}, {"1", "", false},
		{"1", "q=%31", true}, {"a b", "q=a+b", true}, {"*", "q=x", true}, {"*", "q", true}, {"*", "p=x", false},
		{"", "q", true}, {"", "q=1", false}, {"a*", "q=abc", true}, {"a*", "q=ba", false}, {"*c", "q=abc", true},
		{"a*c", "q=ac", true}, {"a*c", "q=a", false}, {"aba*aba", "q=aba", false}, {"a*b*c", "q=a1b2c", true},
		{"a*b*c", "q=acb", false}, {"*a*a*", "q=a", false}, {"**", "q=", true}, {"a*b*b", "q=ab", false},
	}
	for _, c := range cases {
		for _, pattern := range []string{"GET /u/{id}", ""} { // the path has a value, too, which is not of the query
			rule := limitRule(t, "r", "GET /u/{q}", rules.By{}, 1, 1)
			rule.Match.Query = []rules.QueryMatch{{Name: "q", Value: c.value}}
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			if got := f.Check(get(pattern, "/u/1", c.query)).Rule == "r"; got != c.want {
				t.Errorf("query %q on %q: matches %v, want %v", c.value, c.query, got, c.want)
			}
		}
	}
	rule := limitRule(t, "r", "*", rules.By{}, 1, 1)
	rule.Match.Query = []rules.QueryMatch{{Name: "a", Value: "1"}, {Name: "b", Value: "*"}}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	if f.Check(get("", "/", "a=1")).Rule != "" || f.Check(get("", "/", "b=&a=1")).Rule != "r" {
		t.Error("want all parameters of the match")
	}
}

func TestShadow(t *testing.T) {
	shadow := limitRule(t, "shadow", "GET /s", rules.By{}, 1, 1)
	shadow.Limit.Mode = rules.ModeShadow
	over := rules.Decision{Allowed: true, Reason: rules.ReasonShadow, Rule: "shadow"}

	f := newFixture(t, rules.Rules{Rules: []rules.Rule{shadow}})
	f.Check(search)
	for range 3 {
		want(t, f.Check(search), over)
	}
	if s := f.Stats(); s.Shadowed != 3 || s.Limited != 0 {
		t.Errorf("%+v", s)
	}

	// In either order the figures of the limit that allows are reported. A limit that denies,
	// denies.
	real := limitRule(t, "real", "GET /s", rules.By{}, 1, 3)
	for _, ruleset := range [][]rules.Rule{{shadow, real}, {real, shadow}} {
		f := newFixture(t, rules.Rules{Rules: ruleset})
		f.Check(search)
		want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 3, Remaining: 1, Rule: "real"})
		f.Check(search)
		if d := f.Check(search); d.Allowed || d.Rule != "real" {
			t.Errorf("%+v, want a denial", d)
		}
	}
}

// With WithShadow every request passes, and the requests marked as shadowed are those that are
// refused without it.
func TestWithShadow(t *testing.T) {
	ruleset := rules.Rules{Rules: []rules.Rule{
		limitRule(t, "a", "GET /s", rules.By{}, 3600, 3),
		hotRule(t, "b", "GET /s", byNames("q"), 3600, 2),
	}}
	enforced, shadow := newFixture(t, ruleset), newFixture(t, ruleset, WithShadow())
	enforced.heat(t, "b GET /s?q=1")
	shadow.heat(t, "b GET /s?q=1")
	refused := 0
	for i := range 50 {
		req := get("GET /s", "/s", []string{"q=1", "q=2"}[i%2])
		a, b := enforced.Check(req), shadow.Check(req)
		if !b.Allowed {
			t.Fatalf("request %d was refused: %+v", i, b)
		}
		if (b.Reason == rules.ReasonShadow) == a.Allowed || a.Rule != b.Rule {
			t.Fatalf("request %d: %+v, in shadow %+v", i, a, b)
		}
		if !a.Allowed {
			refused++
		}
		enforced.now += 300 * time.Millisecond
		shadow.now += 300 * time.Millisecond
	}
	if s := shadow.Stats(); refused == 0 || s.Shadowed != int64(refused) || s.Limited != 0 {
		t.Errorf("%d were refused, %+v", refused, s)
	}
}

// A rule without a limit finds and counts keys, and limits no request.
func TestWatchOnly(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 0, 0)}})
	f.heat(t, "r GET /s?q=1")
	if n := tokens(f, search); n != 1000 {
		t.Errorf("refused after %d", n)
	}
	if n := f.keyCounts()["r GET /s?q=1"]; n != 1000 || !f.IsHot("GET /s?q=1") {
		t.Errorf("counted %d", n)
	}
}

// Published keys of a rule that this process does not know, or whose limit it does not know, limit
// no request.
func TestForeignHotKeys(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "r", "GET /s", byNames("q"), 1, 1),
		limitRule(t, "plain", "GET /s", byNames("q"), 1, 1000),
	}})
	f.heat(t, "gone GET /s?q=1", "plain GET /s?q=1", "r GET /other?q=1")
	if n := tokens(f, search); n != 1000 {
		t.Errorf("refused after %d", n)
	}
}
