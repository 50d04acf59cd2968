package middleware

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func is(name, value string) []rules.QueryMatch {
	return []rules.QueryMatch{{Name: name, Value: value}}
}

func TestExceptions(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byNames("q"), 1, 2)
	rule.Except = []rules.Exception{
		{Values: is("q", "probe"), Action: rules.Allow},
		{Values: is("q", "evil*"), Action: rules.Block},
		{Values: is("q", "vip"), Limit: limit(1, 5)},
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule, limitRule(t, "all", "*", rules.By{}, 1, 900)}})
	f.heat(t, "r GET /s?q=1", "r GET /s?q=probe", "r GET /s?q=evil1", "r GET /s?q=vip")
	of := func(q string) Request { return get("GET /s", "/s", "q="+q+"&page=7") }
	for range 3 { // before there is any token missing
		want(t, f.Check(of("evil1")), rules.Decision{Reason: rules.ReasonBlocked, Rule: "r"})
	}
	for q, n := range map[string]int{"1": 2, "vip": 5, "evil": 0, "%65vil%20": 0} {
		if got := tokens(f, of(q)); got != n {
			t.Errorf("%s got %d, want %d", q, got, n)
		}
	}
	if got := tokens(f, of("probe")); got != 900-7 {
		t.Errorf("what is allowed got %d, want all that another rule has left", got)
	}
	if got := f.keyCounts(); got["r GET /s?q=1"] != 3 || got["r GET /s?q=vip"] != 6 || len(got) != 2 {
		t.Errorf("counted %v", got)
	}
	if s := f.Stats(); s.Blocked != 5 || s.Limited != 5+3 {
		t.Errorf("%+v, want 5 blocked of 8 refused", s)
	}
}

// A value cannot hide in a key that is cut because of its other parameters. A cut key keeps the
// limit of its values.
func TestExceptionsOfCutKeys(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byAll, 1, 2)
	rule.Except = []rules.Exception{
		{Values: is("z", "evil"), Action: rules.Block},
		{Values: is("z", "vip"), Limit: limit(1, 5)},
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	junk := "a=" + strings.Repeat("x", 600) + "&z="
	if d := f.Check(get("GET /s", "/s", junk+"evil")); d.Reason != rules.ReasonBlocked {
		t.Errorf("%+v", d)
	}
	vip := get("GET /s", "/s", junk+"vip")
	f.Check(vip)
	keys := f.keys()
	if len(keys) != 1 || strings.Contains(keys[0], "vip") {
		t.Fatalf("counted %q", keys)
	}
	f.heat(t, keys...)
	if got := tokens(f, vip); got != 5 {
		t.Errorf("got %d, want 5", got)
	}
	f.heat(t)
	f.heat(t, keys...) // hot again after a flap
	if got := tokens(f, vip); got != 0 {
		t.Errorf("a flap grants %d", got)
	}
}

// A blocked value takes precedence over a limited one, and shadow over both.
func TestBlockedAmongOthers(t *testing.T) {
	blocks := hotRule(t, "b", "GET /s", byNames("q"), 1, 1)
	blocks.Except = []rules.Exception{{Values: is("q", "1"), Action: rules.Block}}
	drained := limitRule(t, "one", "GET /s", rules.By{}, 1, 1)
	blocked := rules.Decision{Reason: rules.ReasonBlocked, Rule: "b"}
	for _, ruleset := range [][]rules.Rule{{blocks, drained}, {drained, blocks}} {
		f := newFixture(t, rules.Rules{Rules: ruleset})
		for range 3 { // the other's token is given back each time
			want(t, f.Check(search), blocked)
		}
		f.Check(get("GET /s", "/s", "q=2"))
		want(t, f.Check(search), blocked) // though the other denies as well
	}
	ruleset := rules.Rules{Rules: []rules.Rule{blocks}}
	f := newFixture(t, ruleset, WithShadow())
	want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonShadow, Rule: "b"})
	if s := f.Stats(); s.Shadowed != 1 || s.Blocked != 0 || s.Limited != 0 {
		t.Errorf("%+v", s)
	}
	shadow := *blocks.Limit
	shadow.Mode = rules.ModeShadow
	ruleset.Rules[0].Limit = &shadow
	f = newFixture(t, ruleset)
	want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonShadow, Rule: "b"})
	if s := f.Stats(); s.Shadowed != 1 || s.Blocked != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRefuseBlocked(t *testing.T) {
	rule := rules.Rule{
		ID: "r", Match: rules.Match{Route: parse(t, "*")}, By: byNames("q"),
		Except: []rules.Exception{{Values: is("q", "evil"), Action: rules.Block}},
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	w := serve(f.Handler(ok), "GET", "/s?q=evil")
	if w.Code != http.StatusForbidden || w.Header().Get("Retry-After") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if got := strings.TrimSpace(w.Body.String()); got != `{"type":"about:blank","title":"Forbidden","status":403}` {
		t.Errorf("body %s", got)
	}
	if w := serve(f.Handler(ok), "GET", "/s?q=good"); w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
}

// The index finds the same exception as checking them all in order.
func TestExceptionsAreFoundInOrder(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "path:c", "query:a", "x:y"})
		value := rapid.SampledFrom([]string{"1", "2", "*", "1*", "a b", "*&", ""})
		rule := &rules.Rule{Except: make([]rules.Exception, rapid.IntRange(1, 8).Draw(rt, "exceptions"))}
		list := make([]exception, len(rule.Except))
		for i := range list {
			for range rapid.IntRange(1, 3).Draw(rt, "values") {
				rule.Except[i].Values = append(rule.Except[i].Values, rules.QueryMatch{Name: name.Draw(rt, "name"), Value: value.Draw(rt, "value")})
			}
			list[i].Exception = &rule.Except[i]
		}
		e := newExceptions(list)
		var params []rules.Param
		for range rapid.IntRange(0, 4).Draw(rt, "params") {
			params = append(params, rules.Param{
				Source: rapid.SampledFrom([]rules.Source{rules.Query, rules.Path}).Draw(rt, "source"),
				Name:   rapid.SampledFrom([]string{"a", "b", "c", "x:y"}).Draw(rt, "of"),
				Value:  rapid.SampledFrom([]string{"1", "2", "12", "a b", "&", ""}).Draw(rt, "is"),
			})
		}
		if rapid.Bool().Draw(rt, "has the values of an exception") {
			for _, v := range rapid.SampledFrom(rule.Except).Draw(rt, "exception").Values {
				p := v.Param()
				p.Value = strings.ReplaceAll(v.Value, "*", "z")
				params = append(params, p)
			}
		}
		text := rules.Text(rapid.SampledFrom([]string{"GET /s", "what?", ""}).Draw(rt, "route"), params...)
		got, want := e.firstMatch([]byte(text)), rule.Exception(text)
		if (got == nil) != (want == nil) || got != nil && got.Exception != want {
			rt.Fatalf("%q: found %+v, want %+v", text, got, want)
		}
		if got != nil {
			found++
		}
	})
	if !testing.Short() && found == 0 {
		t.Error("nothing was ever found: the test tests nothing")
	}
}

// An exception's keys have a table of their own, with a bounded number of places.
func TestExceptionsOfARuleWithoutHot(t *testing.T) {
	rule := limitRule(t, "r", "GET /s", byNames("q"), 1, 2)
	rule.Except = []rules.Exception{{Values: is("q", "v*"), Limit: limit(1, 1)}, {Values: is("q", "free"), Action: rules.Allow}}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithMaxKeys(1))
	for i, want := range map[string]int{"1": 2, "v1": 1, "free": 1000} {
		if got := tokens(f, get("GET /s", "/s", "q="+i)); got != want {
			t.Errorf("%s got %d, want %d", i, got, want)
		}
	}
	for i := range 3 {
		f.Check(get("GET /s", "/s", fmt.Sprint("q=v2", i)))
		f.Check(get("GET /s", "/s", fmt.Sprint("q=2", i)))
	}
	if n := f.Stats().Displaced; n != 6 {
		t.Errorf("%d displaced, want 6", n)
	}
}
