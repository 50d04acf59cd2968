package middleware

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A matcher's key replaces the rule's in its limit and its counts, and an empty key is no match.
// If the matcher asks to ignore the request, it is exempt from all rules. If the matcher panics,
// the request passes.
func TestMatcher(t *testing.T) {
	by := func(r *http.Request) (string, bool) {
		switch user := r.Header.Get("User"); user {
		case "panic":
			panic("inside")
		case "admin":
			return "", true
		default:
			return user, false
		}
	}
	single := limitRule(t, "single", "GET /s", rules.By{}, 1, 1) // has a bucket for each user now
	hot := hotRule(t, "hot", "*", byNames("key"), 0, 0)
	hot.Except = []rules.Exception{{Values: is("key", "a b"), Action: rules.Block}}
	all := limitRule(t, "all", "*", rules.By{}, 1, 100)
	mux := http.NewServeMux()
	mux.Handle("GET /s", ok)
	for _, routed := range []bool{true, false} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{all, single, hot}}, WithMatcher("single", by), WithMatcher("hot", by))
		h := f.Handler(mux)
		if !routed {
			h = f.Handler(http.HandlerFunc(mux.ServeHTTP))
		}
		as := func(user string) int {
			req := httptest.NewRequest("GET", "/s?q=1", nil)
			req.Header.Set("User", user)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			return w.Code
		}
		var got []int
		for _, user := range []string{"alice", "alice", "bob", "", "", "admin", "admin", "panic", "a b"} {
			got = append(got, as(user))
		}
		if want := []int{200, 429, 200, 200, 200, 200, 200, 200, 403}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if got, want := f.keys(), []string{"hot GET /s?key=alice", "hot GET /s?key=bob"}; !slices.Equal(got, want) {
			t.Errorf("counted %q, want %q", got, want)
		}
		if n := f.Stats().Panics; n != 1 {
			t.Errorf("%d panics", n)
		}
		if left := f.rules.Load().byID("all").spec.single.FreshAfter(f.now); left != 4*time.Hour {
			t.Errorf("%v of tokens are taken, want those of alice, bob and two who are nobody", left)
		}
		if d := f.Check(search); d.Rule != "all" {
			t.Errorf("%+v: what is not HTTP has no matcher", d)
		}
	}
}

// A matcher is asked only about requests that its rule would match.
func TestMatcherOfItsRule(t *testing.T) {
	rule := limitRule(t, "r", "GET /s", rules.By{}, 1, 1)
	rule.Match.Query = is("q", "*")
	asked := 0
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithMatcher("r", func(*http.Request) (string, bool) {
		asked++
		return "x", false
	}))
	h := f.Handler(ok)
	for target, want := range map[string]int{"/t?q=1": 0, "/s?b=1": 0, "/s?q=1": 1} {
		asked = 0
		if serve(h, "GET", target); asked != want {
			t.Errorf("%s: asked %d times", target, asked)
		}
	}
}

// With evaluate: first the first matcher that returns a key decides.
func TestMatchersInOrder(t *testing.T) {
	key := func(header string) func(*http.Request) (string, bool) {
		return func(r *http.Request) (string, bool) { return r.Header.Get(header), false }
	}
	f := newFixture(t, rules.Rules{Evaluate: rules.EvaluateFirst, DenyNoMatch: true, Rules: []rules.Rule{
		limitRule(t, "one", "*", rules.By{}, 1, 1), limitRule(t, "two", "*", rules.By{}, 1, 2),
	}}, WithMatcher("one", key("One")), WithMatcher("two", key("Two")), WithHeaders())
	h := f.Handler(ok)
	for headers, want := range map[[2]string]string{{"x", "y"}: `"one";r=0;t=3600`, {"", "y"}: `"two";r=1;t=3600`, {"", ""}: ""} {
		req := httptest.NewRequest("GET", "/s", nil)
		req.Header.Set("One", headers[0])
		req.Header.Set("Two", headers[1])
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if got := w.Header().Get("RateLimit"); got != want || (want == "") != (w.Code == http.StatusForbidden) {
			t.Errorf("%q: %d %s, want %s", headers, w.Code, got, want)
		}
	}
}

// TestFirstMatcherWins asks three matchers, with a rule without one at each place among them. Each
// matcher returns nothing, a key or ignore. The first answer wins.
func TestFirstMatcherWins(t *testing.T) {
	const nothing, key, ignore = 0, 1, 2
	for _, evaluate := range []rules.Evaluate{rules.EvaluateAll, rules.EvaluateFirst} {
		for plainAt := range 5 { // 4: there is none
			for answers := range 3 * 3 * 3 {
				var ruleset []rules.Rule
				var options []Option
				var want []string // keys that are counted
				exempt, decided, answered := false, false, false
				first := evaluate == rules.EvaluateFirst
				rest := answers
				for i, id := range []string{"a", "b", "c", "d"} {
					ruleset = append(ruleset, hotRule(t, id, "GET /s", byNames("key"), 0, 0))
					if i == plainAt {
						if !exempt && !decided {
							want = append(want, id+" GET /s?key=own")
							decided = first
						}
						continue
					}
					if i == 3 && plainAt == 4 {
						ruleset = ruleset[:3]
						continue
					}
					answer := rest % 3
					rest /= 3
					options = append(options, WithMatcher(id, func(*http.Request) (string, bool) {
						return []string{"", id, ""}[answer], answer == ignore
					}))
					if exempt || decided {
						continue
					}
					switch answer {
					case key:
						want, answered, decided = append(want, id+" GET /s?key="+id), true, first
					case ignore:
						exempt = !answered
					}
				}
				if exempt {
					want = nil
				}
				f := newFixture(t, rules.Rules{Evaluate: evaluate, Rules: ruleset}, options...)
				serve(f.Handler(ok), "GET", "/s?key=own")
				got := f.keys()
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("evaluate %v, plain rule at %d, answers %d: counted %q, want %q", evaluate, plainAt, answers, got, want)
				}
			}
		}
	}
}
