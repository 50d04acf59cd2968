package middleware

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

func TestHooks(t *testing.T) {
	var told []string
	tell := func(hook string) func(Request, rules.Decision) {
		return func(r Request, d rules.Decision) {
			told = append(told, fmt.Sprint(hook, " ", r.Query+r.Pattern, " ", d.Reason, " ", d.Remaining))
		}
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 20)}}, WithHooks(Hooks{
		Before: func(r Request) { told = append(told, "before "+r.Query+r.Pattern) },
		After:  tell("after"), Denied: tell("denied"), Near: tell("near"),
	}))
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("told %q,\nwant %q", told, want)
		}
		told = nil
	}
	f.Check(get("", "/s", "q=1"))
	expect("before q=1", "after q=1 within 19")
	for range 16 {
		f.Check(search)
	}
	told = nil
	f.Enter(t.Context(), "job")
	expect("before job", "after job within 2")
	f.Check(get("", "/s", "q=1"))
	expect("before q=1", "after q=1 within 1", "near q=1 within 1")
	f.Check(search)
	told = nil
	serve(f.Handler(ok), "GET", "/s?q=2")
	expect("before q=2", "after q=2 limited 0", "denied q=2 limited 0")
}

// A hook that panics changes nothing.
func TestHooksPanic(t *testing.T) {
	bad := func(Request, rules.Decision) { panic("inside") }
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 1)}},
		WithHooks(Hooks{Before: func(Request) { panic("inside") }, After: bad, Denied: bad, Near: bad}))
	f.Check(search)
	if d := f.Check(search); d.Allowed || d.Reason != rules.ReasonLimited {
		t.Errorf("%+v", d)
	}
	if n := f.Stats().Panics; n != 5 {
		t.Errorf("%d panics", n)
	}
}

// The caller is determined only for hooks and for sampled requests of hot keys.
func TestCallerIsAskedForIfNeeded(t *testing.T) {
	asked := 0
	caller := WithCaller(func(*http.Request) string { asked++; return "ann" })
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byNames("q"), 3600, 1)}}, caller)
	h := f.Handler(ok)
	if serve(h, "GET", "/s?q=1"); asked != 0 {
		t.Errorf("asked %d times for a key that is not hot", asked)
	}
	f.heat(t, "r GET /s?q=1")
	if serve(h, "GET", "/s?q=1"); asked != 1 {
		t.Errorf("asked %d times for a key that is hot", asked)
	}
	d, _ := f.Begin(Request{Method: "GET", Path: "/s", Query: "q=1", Caller: "bob", MakeHTTP: func() *http.Request {
		t.Error("a request was made for a caller that is known")
		return nil
	}})
	if d.Allowed || asked != 1 {
		t.Errorf("asked %d times: %+v", asked, d)
	}
	var seen string
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", byNames("q"), 3600, 1)}}, caller,
		WithHooks(Hooks{Before: func(r Request) { seen = r.Caller }}))
	if serve(f.Handler(ok), "GET", "/s?q=1"); seen != "ann" {
		t.Errorf("a hook sees the caller %q", seen)
	}
}
