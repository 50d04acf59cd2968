package middleware

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// ways are how a request of a hot key may be checked and answered.
var ways = map[string]struct {
	share func(admit func(refresh bool) (http.Handler, bool)) Shared
	// asks has how the limit is asked: "" not at all, "once", "twice", or by a refresh. The answer
	// to the last question counts the request.
	asks string
	want string // the decision that counts the request, if not that of the limit
}{
	"stored": {func(func(bool) (http.Handler, bool)) Shared { return Shared{Outcome: Stored, Status: 200} }, "", "shared"},
	"joined": {func(func(bool) (http.Handler, bool)) Shared { return Shared{Outcome: Joined, Status: 200} }, "", "shared"},
	"refreshed": {func(admit func(bool) (http.Handler, bool)) Shared {
		admit(true)
		return Shared{Outcome: Stored, Status: 200}
	}, "refresh", "shared"},
	"led":     {func(admit func(bool) (http.Handler, bool)) Shared { return ledBy(admit, Led) }, "once", ""},
	"alone":   {func(func(bool) (http.Handler, bool)) Shared { return Shared{Reason: "cookie"} }, "once", ""},
	"in vain": {func(admit func(bool) (http.Handler, bool)) Shared { return ledBy(admit, Alone) }, "twice", ""},
	"panics": {func(admit func(bool) (http.Handler, bool)) Shared {
		if shared := ledBy(admit, Led); shared.Outcome == Refused {
			return shared
		}
		panic("a defect")
	}, "twice", ""},
	"left":       {func(func(bool) (http.Handler, bool)) Shared { return Shared{Outcome: Left} }, "", "gone"},
	"left alone": {func(admit func(bool) (http.Handler, bool)) Shared { return ledBy(admit, Left) }, "once", ""},
	// Without a Sharer:
	"at once": {nil, "once", ""},
	"POST":    {nil, "once", ""},
	"count":   {nil, "", "shared"}, // and the gateway's cache answers
	"limit":   {nil, "once", ""},   // behind that
}

// ledBy returns the result of a request that leads a run, if the limit admits it.
func ledBy(admit func(bool) (http.Handler, bool), outcome Outcome) Shared {
	h, ok := admit(false)
	if !ok {
		return Shared{Outcome: Refused}
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/s?q=1", nil))
	return Shared{Outcome: outcome, Status: 200}
}

// Each request of a hot key counts once: as answered together with others, or by the decision of its
// limit, however often that is asked. So the decisions of all rules add up to the requests.
func TestEachRequestCountsOnce(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.Int64Range(1, 20).Draw(rt, "tokens")
		r := onHot(hotRule(t, "r", "GET /s", byAll, 1, tokens))
		all := []rules.Rule{r}
		watches := rapid.Bool().Draw(rt, "with a rule in shadow mode")
		if watches {
			watch := hotRule(t, "watch", "GET /s", byAll, 1, 1)
			watch.Limit.Mode = rules.ModeShadow
			all = append(all, watch)
		}
		all[0].Match.Route = parse(t, "/s")
		s := new(testSharer)
		f := newFixture(t, rules.Rules{Rules: all}, WithSharer(s))
		f.heat(t, "r GET /s?q=1", "watch GET /s?q=1", "r POST /s?q=1", "watch POST /s?q=1")
		h := f.Handler(okHandler)
		left, want, asked := map[string]int64{"GET": tokens, "POST": tokens}, map[string]int64{}, 0
		ask := func(method string) string {
			asked++
			if left[method] == 0 {
				return "limited"
			}
			left[method]--
			return "within"
		}
		for range rapid.IntRange(1, 30).Draw(rt, "requests") {
			name := rapid.SampledFrom([]string{"stored", "joined", "refreshed", "led", "alone", "in vain", "panics", "left", "left alone", "at once", "POST", "count", "limit"}).Draw(rt, "way")
			way, method := ways[name], "GET"
			if name == "POST" {
				method = name
			}
			decision, decisions := way.want, 0
			switch way.asks {
			case "refresh":
				ask(method)
				asked--
			case "twice":
				if ask(method) == "limited" {
					decision = "limited"
					break
				}
				asked--
				fallthrough
			case "once":
				decision = ask(method)
			}
			want[decision]++
			seen[name+" "+decision]++
			req := get(method+" /s", "/s", "q=1")
			req.Method = method
			switch name {
			case "at once", "POST":
				f.Check(req)
			case "count", "limit":
				req.Steps = CountStep
				if d := f.Check(req); d.Reason != rules.ReasonShared {
					rt.Fatalf("%+v", d)
				}
				if name == "limit" {
					req.Steps = LimitStep
					f.Check(req)
				}
			default:
				s.share = func(_ *http.Request, _ string, _ http.Header, admit func(bool) (http.Handler, bool)) Shared {
					return way.share(admit)
				}
				in := httptest.NewRequest(method, "/s?q=1", nil)
				in.Pattern = method + " /s"
				h.ServeHTTP(httptest.NewRecorder(), in)
			}
			got, stats := map[string]int64{}, f.Stats()
			for _, rule := range f.RuleStats() {
				for reason, n := range rule.Decisions {
					if n > 0 && reason != "shadow" {
						got[reason] += n
						decisions += int(n)
					}
				}
			}
			if !maps.Equal(got, want) {
				rt.Fatalf("after %q: decisions %v, want %v", name, got, want)
			}
			if stats.Limited != want["limited"] {
				rt.Fatalf("after %q: %d limited, want %d", name, stats.Limited, want["limited"])
			}
			if shadow := f.RuleStats()[len(all)-1].Decisions["shadow"]; watches && (shadow != stats.Shadowed || shadow > int64(asked)) {
				rt.Fatalf("after %q: %d in shadow mode, %d in all, of %d requests", name, shadow, stats.Shadowed, asked)
			}
		}
	})
	if want := []string{"led within", "led limited", "in vain within", "in vain limited", "refreshed shared", "left alone within", "left gone", "limit limited"}; !testing.Short() {
		for _, name := range want {
			if seen[name] == 0 {
				t.Errorf("%q was not tried: %v", name, seen)
			}
		}
	}
}

// The number of requests that were answered together never decreases, although a request counts among
// them until its limits are asked.
func TestSharedNeverDecreases(t *testing.T) {
	c := new(decisionCounts)
	step := func(reason rules.Reason, asked int, want int64) {
		t.Helper()
		c.of[reason].add(1)
		c.asked.add(asked)
		if got := c.loadShared(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	step(rules.ReasonShared, 0, 1)
	step(rules.ReasonWithin, 1, 1) // its limits are asked now
	step(rules.ReasonShared, 0, 1) // it takes the place of the first
	step(rules.ReasonShared, 0, 2)
}
