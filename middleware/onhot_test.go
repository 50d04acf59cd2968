package middleware

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// testSharer answers by its function.
type testSharer struct {
	share       func(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) Shared
	err         error
	invalidated []string
}

func (s *testSharer) ForRule(*rules.Rule) (Sharing, error) { return s, s.err }
func (s *testSharer) Invalidate(host, path, query string) {
	s.invalidated = append(s.invalidated, host+path+"?"+query)
}
func (s *testSharer) Share(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) Shared {
	return s.share(r, key, header, admit)
}

// onHot makes a rule answer the requests of its hot keys together.
func onHot(r rules.Rule) rules.Rule {
	r.OnHot = &rules.OnHot{Coalesce: true}
	return r
}

// A request that is checked in two steps is counted and decided as one that is checked at once,
// whatever the rules, their exceptions and the operators' controls. The first step decides only for
// requests of which a key is hot and answered together, and which nothing blocks.
func TestTwoStepsAreOne(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		var plain, shared rules.Rules
		plain.Evaluate = rapid.SampledFrom([]rules.Evaluate{rules.EvaluateAll, rules.EvaluateFirst}).Draw(rt, "evaluate")
		shared.Evaluate = plain.Evaluate
		for i := range rapid.IntRange(1, 3).Draw(rt, "rules") {
			r := drawRule(rt, fmt.Sprint("r", i))
			plain.Rules = append(plain.Rules, r)
			if len(r.Hot) > 0 && rapid.IntRange(0, 3).Draw(rt, "on_hot") > 0 {
				r = onHot(r)
			}
			shared.Rules = append(shared.Rules, r)
		}
		opts := []Option{WithSharer(new(testSharer))}
		if rapid.IntRange(0, 5).Draw(rt, "shadow") == 0 {
			opts = append(opts, WithShadow())
			seen["shadow"]++
		}
		one, two := newFixture(rt, plain, opts...), newFixture(rt, shared, opts...)
		param := rapid.Custom(func(t *rapid.T) rules.Param {
			return rules.Param{
				Name:  rapid.SampledFrom([]string{"a", "b", "c", "token"}).Draw(t, "name"),
				Value: rapid.SampledFrom([]string{"1", "2", "x y"}).Draw(t, "value"),
			}
		})
		requests := rapid.SliceOfN(rapid.SliceOfN(param, 0, 5), 1, 3).Draw(rt, "requests")
		var heat []published.Hot
		var controls []published.Control
		hot := map[string]bool{}
		for _, params := range requests {
			for _, r := range plain.Rules {
				for _, set := range oracleKeys(r.By, params) {
					key := rules.Key{Rule: r.ID, Text: set.text()}
					if len(r.Hot) > 0 && rapid.Bool().Draw(rt, "is hot") {
						spared := rapid.IntRange(0, 3).Draw(rt, "spared") == 0
						heat = append(heat, published.Hot{Key: key, Spared: spared})
						hot[key.String()] = !spared
					}
					if r.By.Kind != rules.ByNone && rapid.IntRange(0, 7).Draw(rt, "controlled") == 0 {
						action := rapid.SampledFrom([]published.ControlAction{published.ControlBlock, published.ControlAllow}).Draw(rt, "action")
						controls = append(controls, published.Control{Key: key, Action: action, Until: time.Now().Add(time.Hour)})
					}
				}
			}
		}
		for _, f := range []*fixture{one, two} {
			replaceHot(f.hot, "", heat)
			f.SetControls(slices.Clone(controls))
		}
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			params := rapid.SampledFrom(requests).Draw(rt, "request")
			var query []string
			for _, p := range params {
				query = append(query, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
			}
			req := get("GET /s", "/s", strings.Join(query, "&"))
			want := one.Check(req)
			req.Steps = CountStep
			got := two.Check(req)
			if got.Reason == rules.ReasonShared {
				seen["shared"]++
				if !got.Allowed || got.Answer().Header[HotHeader] == nil {
					rt.Fatalf("%+v", got)
				}
				if want.Reason == rules.ReasonBlocked {
					rt.Fatalf("%q is blocked, and answered together with others", query)
				}
				rule := shared.Rules[slices.IndexFunc(shared.Rules, func(r rules.Rule) bool { return r.ID == got.Rule })]
				isHot := func(set oracleKey) bool { return hot[rules.Key{Rule: rule.ID, Text: set.text()}.String()] }
				if rule.OnHot == nil || !slices.ContainsFunc(oracleKeys(rule.By, params), isHot) {
					rt.Fatalf("%q is answered together by %s, which has no such hot key", query, rule.ID)
				}
				req.Steps = LimitStep
				got = two.Check(req)
			} else {
				seen["not"]++
			}
			if got, want := ofLimits(rt, got), ofLimits(rt, want); got != want {
				rt.Fatalf("%q is decided\n%+v, want\n%+v", query, got, want)
			}
			if got, want := two.keyCounts(), one.keyCounts(); !maps.Equal(got, want) {
				rt.Fatalf("%q: counted\n%v, want\n%v", query, got, want)
			}
		}
		if got, want := two.Stats(), one.Stats(); got != want {
			rt.Fatalf("%+v, want\n%+v", got, want)
		}
		if got, want := two.RuleStats(), one.RuleStats(); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v, want\n%+v", got, want)
		}
		if got, want := two.HotKeys(), one.HotKeys(); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v, want\n%+v", got, want)
		}
	})
	if !testing.Short() && (seen["shared"] == 0 || seen["not"] == 0 || seen["shadow"] == 0) {
		t.Errorf("%v: the test tests too little", seen)
	}
}

// serveShared serves a request of a hot key with a rule that admits so many.
func serveShared(t *testing.T, tokens int64, s *testSharer, next http.Handler) (*fixture, *httptest.ResponseRecorder) {
	t.Helper()
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{onHot(hotRule(t, "r", "GET /s", byAll, 1, tokens))}}, WithSharer(s))
	f.heat(t, "r GET /s?q=1")
	mux := http.NewServeMux()
	mux.Handle("GET /s", next)
	mux.Handle("POST /s", next)
	w := httptest.NewRecorder()
	f.Handler(mux).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/s?q=1", nil))
	return f, w
}

var okHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "handler") })

// Each outcome has its answer, and takes a token only if the handler runs.
func TestOutcomes(t *testing.T) {
	run := func(admit func(bool) (http.Handler, bool), refresh bool) (body string) {
		h, ok := admit(refresh)
		if !ok {
			return ""
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/s?q=1", nil))
		return w.Body.String()
	}
	for name, c := range map[string]struct {
		tokens int64
		share  func(header http.Header, admit func(bool) (http.Handler, bool)) Shared
		want   string
		left   int64
	}{
		"stored": {1, func(h http.Header, _ func(bool) (http.Handler, bool)) Shared {
			h.Set("X", "1")
			return Shared{Outcome: Stored, Status: 203, Body: []byte("stored")}
		}, "203 1 stored", 1},
		"led": {1, func(_ http.Header, admit func(bool) (http.Handler, bool)) Shared {
			return Shared{Outcome: Led, Status: 200, Body: []byte("led by " + run(admit, false))}
		}, "200  led by handler", 0},
		"alone": {1, func(http.Header, func(bool) (http.Handler, bool)) Shared { return Shared{} }, "200  handler", 0},
		"alone after a run": {1, func(_ http.Header, admit func(bool) (http.Handler, bool)) Shared {
			run(admit, false)
			return Shared{}
		}, "429  ", 0},
		"refused": {0, func(_ http.Header, admit func(bool) (http.Handler, bool)) Shared {
			if body := run(admit, false); body != "" {
				panic("admitted")
			}
			return Shared{Outcome: Refused}
		}, "429  ", 0},
		"refresh refused": {0, func(_ http.Header, admit func(bool) (http.Handler, bool)) Shared {
			run(admit, true)
			return Shared{Outcome: Stored, Status: 200, Body: []byte("stale")}
		}, "200  stale", 0},
		"panic": {1, func(http.Header, func(bool) (http.Handler, bool)) Shared { panic("a defect") }, "200  handler", 0},
		"left":  {1, func(http.Header, func(bool) (http.Handler, bool)) Shared { return Shared{Outcome: Left} }, "503  ", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &testSharer{share: func(_ *http.Request, key string, h http.Header, admit func(bool) (http.Handler, bool)) Shared {
				if key != "r GET /s?q=1" {
					t.Errorf("key %q", key)
				}
				return c.share(h, admit)
			}}
			f, w := serveShared(t, max(1, c.tokens), s, okHandler)
			if c.tokens == 0 { // the only token is taken first
				f, w = serveTwice(t, s)
			}
			body := w.Body.String()
			if w.Code == 429 {
				body = ""
			}
			if got := fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("X"), body); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.tokens > 0 {
				if d := f.Check(get("GET /s", "/s", "q=1")); d.Allowed != (c.left > 0) {
					t.Errorf("afterwards %+v, want %d tokens", d, c.left)
				}
			}
		})
	}
}

// serveTwice takes the only token and then serves a request.
func serveTwice(t *testing.T, s *testSharer) (*fixture, *httptest.ResponseRecorder) {
	t.Helper()
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{onHot(hotRule(t, "r", "GET /s", byAll, 1, 1))}}, WithSharer(s))
	f.heat(t, "r GET /s?q=1")
	if d := f.Check(get("GET /s", "/s", "q=1")); !d.Allowed {
		t.Fatal(d)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /s", okHandler)
	w := httptest.NewRecorder()
	f.Handler(mux).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/s?q=1", nil))
	return f, w
}

// leaderHandler uses state of the request's goroutine.
type leaderHandler struct {
	http.Handler
	lead func() http.Handler
}

func (h leaderHandler) Lead() http.Handler { return h.lead() }

// A run of a Leader may pass the guard again, which neither counts nor limits it.
func TestLeaderPassesTheGuardAgain(t *testing.T) {
	var guarded http.Handler
	calls := 0
	inner := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ })
	s := &testSharer{}
	s.share = func(r *http.Request, _ string, _ http.Header, admit func(bool) (http.Handler, bool)) Shared {
		h, ok := admit(false)
		if !ok {
			return Shared{Outcome: Refused}
		}
		leader := r.Clone(context.Background())
		h.ServeHTTP(httptest.NewRecorder(), leader)
		return Shared{Outcome: Led, Status: 200}
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{onHot(hotRule(t, "r", "GET /s", byAll, 1, 1))}}, WithSharer(s))
	f.heat(t, "r GET /s?q=1")
	guarded = f.Handler(leaderHandler{inner, func() http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { guarded.ServeHTTP(w, r) })
	}})
	r := httptest.NewRequest(http.MethodGet, "/s?q=1", nil)
	r.Pattern = "GET /s"
	w := httptest.NewRecorder()
	guarded.ServeHTTP(w, r)
	if counted := f.keyCounts(); w.Code != 200 || calls != 1 || counted["r GET /s?q=1"] != 1 {
		t.Errorf("%d, %d calls, counted %v", w.Code, calls, counted)
	}
}

// A method that is not safe invalidates its target while a key is hot and for some time after,
// unless it fails. The path of the target is one of a rule with on_hot.
func TestInvalidates(t *testing.T) {
	s := new(testSharer)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		onHot(hotRule(t, "r", "GET /{x}", byAll, 1, 1)), onHot(hotRule(t, "below", "/c/", byAll, 1, 1)), hotRule(t, "other", "GET /a/{x}", byAll, 1, 1),
	}}, WithSharer(s))
	status := 0
	h := f.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host, r.URL.Path, r.URL.RawPath, r.URL.RawQuery = "other", "/other", "", "" // a handler's matter
		if status > 0 {
			w.WriteHeader(status)
		}
	}))
	serve := func(method string, answer int) bool {
		s.invalidated, status = nil, answer
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "http://shop/a%2Fb?q=1", nil))
		if len(s.invalidated) > 0 && s.invalidated[0] != "shop/a%2Fb?q=1" {
			t.Errorf("invalidated %q", s.invalidated)
		}
		return len(s.invalidated) == 1
	}
	if serve("POST", 200) {
		t.Error("invalidated while nothing was ever hot")
	}
	f.heat(t, "r GET /{x}?q=1")
	for _, c := range []struct {
		method string
		status int
		want   bool
	}{{"POST", 0, true}, {"PUT", 204, true}, {"DELETE", 303, true}, {"LOCK", 200, true}, {"POST", 400, false}, {"PATCH", 500, false}, {"GET", 200, false}, {"OPTIONS", 200, false}} {
		if got := serve(c.method, c.status); got != c.want {
			t.Errorf("%s %d: %v, want %v", c.method, c.status, got, c.want)
		}
	}
	for path, want := range map[string]bool{"/a": true, "/%61": true, "/": false, "/a/b": false, "/c": true, "/c/": true, "/c/d/e": true, "/d/c/e": false} {
		s.invalidated, status = nil, 200
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "http://shop"+path, nil))
		if got := len(s.invalidated) > 0; got != want {
			t.Errorf("POST %s invalidates %v, want %v", path, got, want)
		}
	}
	replaceHot(f.hot, "", nil)
	if !serve("POST", 200) {
		t.Error("answers of a key that has just cooled are not invalidated")
	}
	f.lastHot.Store(time.Now().Add(-rememberedFor).UnixNano())
	if serve("POST", 200) {
		t.Error("invalidated although nothing is in memory")
	}
}

// Rules whose answers cannot be kept are not put in force. A guard without a Sharer limits.
func TestSharerErrors(t *testing.T) {
	ruleset := rules.Rules{Namespace: "test", Rules: []rules.Rule{onHot(hotRule(t, "r", "GET /s", byAll, 1, 1))}}
	f := newFixture(t, rules.Rules{})
	if _, err := New(&ruleset, f.counts, WithSharer(&testSharer{err: errors.New("no memory")})); err == nil || !strings.Contains(err.Error(), `rule "r": on_hot: no memory`) {
		t.Errorf("%v", err)
	}
	f = newFixture(t, ruleset)
	f.heat(t, "r GET /s?q=1")
	for _, want := range []bool{true, false} {
		if d := f.Check(Request{Method: "GET", Path: "/s", Pattern: "GET /s", Query: "q=1", Steps: CountStep}); d.Allowed != want {
			t.Errorf("%+v", d)
		}
	}
}
