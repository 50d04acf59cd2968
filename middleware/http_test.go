package middleware

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })

const (
	quotaType    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	capacityType = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

func serve(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestRefuse(t *testing.T) {
	var f *fixture
	var h http.Handler
	for wait, retry := range map[time.Duration]string{0: "2", 500 * time.Millisecond: "1", 1499 * time.Millisecond: "1"} {
		f = newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "terms", "*", byNames("q"), 2400, 1)}}) // a token each 1.5 s
		f.heat(t, "terms GET /s?q=secret-thing")
		h = f.Handler(ok)
		if w := serve(h, "GET", "/s?q=secret-thing"); w.Code != http.StatusOK || w.Body.String() != "served" {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		f.now = time.Hour + wait
		w := serve(h, "GET", "/s?q=secret-thing")
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != retry {
			t.Errorf("after %v: %d, Retry-After %q, want %q", wait, w.Code, w.Header().Get("Retry-After"), retry)
		}
		if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("type %q", got)
		}
		if w.Header().Get("Cache-Control") != "no-store" {
			t.Error("may be cached")
		}
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if body["type"] != quotaType || body["title"] != "Too Many Requests" || body["status"] != 429.0 ||
			!strings.Contains(body["detail"].(string), "retry in "+retry+" s") ||
			!slices.Equal(body["violated-policies"].([]any), []any{"terms"}) {
			t.Errorf("body %s", w.Body)
		}
		if strings.Contains(w.Body.String(), "secret-thing") {
			t.Error("the body tells the parameter")
		}
	}
	f.now = time.Hour + 1500*time.Millisecond
	if w := serve(h, "GET", "/s?q=secret-thing"); w.Code != http.StatusOK {
		t.Errorf("after the wait: %d", w.Code)
	}
}

// whileWritten is a response that calls f before it takes bytes.
type whileWritten struct {
	*httptest.ResponseRecorder
	f func()
}

func (w whileWritten) Write(p []byte) (int, error) {
	w.f()
	return w.ResponseRecorder.Write(p)
}

// Servers hold a response's headers after the handler has returned, and its body while they write
// it. Other refusals change neither of them.
func TestRefusalsShareNothing(t *testing.T) {
	rules := rules.Rules{Rules: []rules.Rule{limitRule(t, "a", "/a", byNames("q"), 3600, 1), limitRule(t, "much-longer", "/b", byNames("q"), 1, 1)}}
	h := newFixture(t, rules, WithHeaders(RateLimitHeaders, LegacyHeaders)).Handler(ok)
	others := func() {
		for range 10 {
			serve(h, "GET", "/b?q=1")
		}
	}
	others()
	serve(h, "GET", "/a?q=1")
	want := serve(h, "GET", "/a?q=1")
	header := want.Header().Clone()
	got := whileWritten{httptest.NewRecorder(), others}
	h.ServeHTTP(got, httptest.NewRequest("GET", "/a?q=1", nil))
	retry := header.Get("Retry-After")
	if !maps.EqualFunc(want.Header(), header, slices.Equal) || len(header) != 8 {
		t.Errorf("%v was %v", want.Header(), header)
	}
	next := got.Header().Get("Retry-After")
	if body := strings.ReplaceAll(got.Body.String(), "retry in "+next+" s", "retry in "+retry+" s"); next == retry || body != want.Body.String() {
		t.Errorf("%s\nwant %s", got.Body, want.Body)
	}
}

func TestRefuseNoMatch(t *testing.T) {
	f := newFixture(t, rules.Rules{DenyNoMatch: true, Rules: []rules.Rule{limitRule(t, "r", "GET /s", rules.By{}, 1, 9)}})
	h := f.Handler(ok)
	w := serve(h, "GET", "/other")
	if w.Code != http.StatusForbidden || w.Header().Get("Retry-After") != "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if got := strings.TrimSpace(w.Body.String()); got != `{"type":"about:blank","title":"Forbidden","status":403}` {
		t.Errorf("body %s", got)
	}
	if w := serve(h, "GET", "/s"); w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
}

func TestWithLimited(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 1)}},
		WithLimited(func(w http.ResponseWriter, r *http.Request, d rules.Decision) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, d.Rule+" "+r.URL.Path+" "+d.RetryAfter.String())
		}))
	h := f.Handler(ok)
	serve(h, "GET", "/s")
	if w := serve(h, "GET", "/s"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "r /s 1h0m0s" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestWithSkip(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 1), hotRule(t, "h", "*", byAll, 0, 0)}},
		WithSkip(func(r *http.Request) bool { return r.URL.Path == "/healthz" }))
	h := f.Handler(ok)
	for range 5 {
		if w := serve(h, "GET", "/healthz"); w.Code != http.StatusOK {
			t.Errorf("%d", w.Code)
		}
	}
	if w := serve(h, "GET", "/s"); w.Code != http.StatusOK {
		t.Error("what was skipped has taken a token")
	}
	if got := f.keys(); !slices.Equal(got, []string{"h GET /s"}) {
		t.Errorf("counted %q", got)
	}
}

// The guard knows the route wherever it stands.
func TestWhereTheRouteComesFrom(t *testing.T) {
	rules := rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 0, 0)}}
	mux := http.NewServeMux()
	mux.Handle("GET /u/{id}", ok)
	mux.Handle("/tree/", ok)
	cases := []struct {
		name   string
		opts   []Option
		build  func(*Guard) http.Handler
		target string
		want   []string
	}{
		{"around a mux", nil, func(g *Guard) http.Handler { return g.Handler(mux) }, "/u/7?q=1", []string{"r GET /u/{id}?path:id=7&q=1"}},
		{"around what hides a mux", nil, func(g *Guard) http.Handler {
			return g.Handler(http.HandlerFunc(mux.ServeHTTP))
		}, "/u/7?q=1", []string{"r GET /u/7?q=1"}},
		{"WithMux", []Option{WithMux(mux)}, func(g *Guard) http.Handler {
			return g.Handler(http.HandlerFunc(mux.ServeHTTP))
		}, "/u/7?q=1", []string{"r GET /u/{id}?path:id=7&q=1"}},
		{"around one handler in a mux", nil, func(g *Guard) http.Handler {
			m := http.NewServeMux()
			m.Handle("GET /u/{id}", g.Handler(ok))
			return m
		}, "/u/7?q=1", []string{"r GET /u/{id}?path:id=7&q=1"}},
		{"around a mux in a mux", nil, func(g *Guard) http.Handler {
			m := http.NewServeMux()
			m.Handle("/api/", http.StripPrefix("/api", g.Handler(mux)))
			return m
		}, "/api/u/7?q=1", []string{"r GET /u/{id}?path:id=7&q=1"}},
		{"WithRoute", []Option{WithRoute(func(r *http.Request) string { return "GET /x/{id}" })}, func(g *Guard) http.Handler {
			return g.Handler(mux)
		}, "/u/7?q=1", []string{"r GET /x/{id}?q=1"}},
		{"WithRoute, not known", []Option{WithRoute(func(r *http.Request) string { return "" })}, func(g *Guard) http.Handler {
			return g.Handler(mux)
		}, "/u/7?q=1", []string{"r GET /u/7?q=1"}},
		{"no such route", nil, func(g *Guard) http.Handler { return g.Handler(mux) }, "/none?q=1", []string{"r UNROUTED /?q=1"}},
		{"redirected", nil, func(g *Guard) http.Handler { return g.Handler(mux) }, "/tree?q=1", []string{"r GET /tree/?q=1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, rules, c.opts...)
			serve(c.build(f.Guard), "GET", c.target)
			if got := f.keys(); !slices.Equal(got, c.want) {
				t.Errorf("counted %q, want %q", got, c.want)
			}
		})
	}
}

// A mux answers some requests with a redirect to a path that the client made up. Such a path is
// not a pattern and must not be cached as one.
func TestNoPatternOfTheClients(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 0, 0)}})
	mux := http.NewServeMux()
	mux.Handle("/a/{x}/", ok)
	h := f.Handler(mux)
	for _, target := range []string{"/a/one", "/a/two", "/a/three", "/b//c"} {
		for _, method := range []string{"GET", "CONNECT"} {
			req := httptest.NewRequest("GET", target, nil)
			req.Method = method
			h.ServeHTTP(httptest.NewRecorder(), req)
		}
	}
	for name := range *f.rules.Load().routes.known.Load() {
		if name != "/a/{x}/" && name != Unrouted {
			t.Errorf("%q is kept as a pattern", name)
		}
	}
}

// A panic in hotparam lets the request pass. A panic in the handler propagates.
func TestHandlerPanics(t *testing.T) {
	rules := rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 9)}}
	panics := func() { panic("inside") }
	for name, opt := range map[string]Option{
		"clock": WithClock(func() time.Duration { panics(); return 0 }),
		"route": WithRoute(func(*http.Request) string { panics(); return "" }),
		"skip":  WithSkip(func(*http.Request) bool { panics(); return false }),
		"nil":   WithRoute(func(r *http.Request) string { return r.Response.Status }), // there is no response
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules, opt)
			if w := serve(f.Handler(ok), "GET", "/s"); w.Code != http.StatusOK || w.Body.String() != "served" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if n := f.Stats().Panics; n != 1 {
				t.Errorf("%d panics counted", n)
			}
		})
	}
	t.Run("handler", func(t *testing.T) {
		f := newFixture(t, rules)
		h := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		defer func() {
			if got, _ := recover().(error); !errors.Is(got, http.ErrAbortHandler) {
				t.Errorf("recovered %v, want the handler's own panic", got)
			}
			if n := f.Stats().Panics; n != 0 {
				t.Errorf("%d panics counted as ours", n)
			}
		}()
		serve(h, "GET", "/s")
	})
}

// This tests a client's view over a real connection.
func TestServer(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /u/{id}", byNames("path:id"), 1, 2)}})
	f.heat(t, "r GET /u/{id}?path:id=7")
	mux := http.NewServeMux()
	mux.Handle("GET /u/{id}", ok)
	server := httptest.NewServer(f.Handler(mux))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	status := func(method, path string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	var got []int
	for _, path := range []string{"/u/7", "/%75/%37", "/u/7?x=1", "/u/%37", "/u/8"} {
		got = append(got, status("GET", path))
	}
	got = append(got, status("HEAD", "/u/7"))
	if want := []int{200, 200, 429, 429, 200, 429}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
