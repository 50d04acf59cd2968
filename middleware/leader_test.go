package middleware

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hotparam/hotparam/middleware/internal/meter"
	"github.com/hotparam/hotparam/rules"
)

// withholder is the writer of a run.
type withholder struct {
	*httptest.ResponseRecorder
	withheld bool
}

func (w *withholder) Withhold() { w.withheld = true }

// routerLeader is a handler behind the guard in a router, whose runs the router restarts.
type routerLeader struct {
	http.Handler
	router *http.Handler
}

func (h routerLeader) Lead() http.Handler {
	if *h.router == nil {
		return nil
	}
	return Restart(*h.router)
}

// The answer to a run that a router restarts is that of the handler behind the guard.
func TestRestart(t *testing.T) {
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		AddCost(r.Context(), 5)
		fmt.Fprint(w, "handler ", r.Header.Get("X-Front"))
	})
	for name, c := range map[string]struct {
		front    func(w http.ResponseWriter, r *http.Request, next http.Handler) // middleware in front of the guard
		handler  http.HandlerFunc
		body     string
		panics   bool
		withheld bool
	}{
		"passes": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Header.Set("X-Front", "1")
			w.Header().Set("X-Request-Id", "of one request")
			next.ServeHTTP(w, r)
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "front")
		}, answers, "handler 1", false, false},
		"answered in front": {func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { fmt.Fprint(w, "login") }, answers, "", false, true},
		"another pattern": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Pattern = "GET /other"
			next.ServeHTTP(w, r)
		}, answers, "", false, true},
		"another target": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			u := *r.URL
			u.RawQuery = "q=2"
			r.URL = &u
			next.ServeHTTP(w, r)
		}, answers, "", false, true},
		"the same target": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			u := *r.URL
			r.URL = &u
			next.ServeHTTP(w, r)
		}, answers, "handler ", false, false},
		"panic": {func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) },
			func(http.ResponseWriter, *http.Request) { panic("the handler's own") }, "", true, false},
		"recovered panic": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			defer func() { _ = recover() }()
			next.ServeHTTP(w, r)
		}, func(http.ResponseWriter, *http.Request) { panic("the handler's own") }, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := &withholder{ResponseRecorder: httptest.NewRecorder()}
			panicked := false
			s := &testSharer{share: func(r *http.Request, _ string, _ http.Header, admit func(bool) (http.Handler, bool)) Shared {
				h, ok := admit(false)
				if !ok {
					t.Fatal("not admitted")
				}
				leader := r.Clone(context.Background())
				func() {
					defer func() { panicked = recover() != nil }()
					h.ServeHTTP(answer, leader)
				}()
				return Shared{Outcome: Led, Status: 200}
			}}
			units := hotRule(t, "units", "GET /s", byAll, 1000, 1000)
			units.Count, units.Limit = rules.Units, nil
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{onHot(hotRule(t, "r", "GET /s", byAll, 1, 1)), units}}, WithSharer(s))
			f.heat(t, "r GET /s?q=1")
			var router http.Handler
			guarded := f.Handler(routerLeader{c.handler, &router})
			again := false
			router = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Pattern = "GET /s"
				if !again {
					again = true
					guarded.ServeHTTP(w, r)
					return
				}
				c.front(w, r, guarded)
			})
			router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/s?q=1", nil))
			if answer.Body.String() != c.body || panicked != c.panics || answer.withheld != c.withheld || len(answer.Header()) > 1 {
				t.Errorf("%q, panicked %t, withheld %t, header %v", answer.Body, panicked, answer.withheld, answer.Header())
			}
			counts := f.keyCounts()
			if want := int64(len(c.body)); counts["r GET /s?q=1"] != 1 || (counts["units GET /s?q=1"] == 5) != (want > 0) {
				t.Errorf("counted %v", counts)
			}
		})
	}
}

// A router may return while the handler still runs. Its answer is withheld.
func TestRestartReturnsEarly(t *testing.T) {
	open, done := make(chan struct{}), make(chan struct{})
	x := &run{pattern: "GET /s"}
	answer := &withholder{ResponseRecorder: httptest.NewRecorder()}
	x.next = Restart(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered := make(chan struct{})
		go func() {
			defer close(done)
			x.pass(w, r, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(entered)
				<-open
			}))
		}()
		<-entered
	}))
	r := httptest.NewRequest(http.MethodGet, "/s", nil)
	r.Pattern = "GET /s"
	x.ServeHTTP(answer, r)
	if !answer.withheld {
		t.Error("an answer that is not complete is shared")
	}
	close(open)
	<-done
}

// If a handler has no runs, no token is taken for one, and the requests are handled alone.
func TestNoRuns(t *testing.T) {
	answer := &withholder{ResponseRecorder: httptest.NewRecorder()}
	var router http.Handler
	s := &testSharer{share: func(r *http.Request, _ string, _ http.Header, admit func(bool) (http.Handler, bool)) Shared {
		h, ok := admit(false)
		if !ok {
			t.Fatal("not admitted")
		}
		h.ServeHTTP(struct{ http.ResponseWriter }{answer}, r) // hidden
		if answer.withheld {
			t.Error("withheld past a writer without Unwrap")
		}
		h.ServeHTTP(&meter.Response{ResponseWriter: answer}, r)
		return Shared{}
	}}
	_, w := serveShared(t, 2, s, okHandler)
	if w.Code != http.StatusOK || answer.withheld {
		t.Errorf("a handler with runs: %d, withheld %t", w.Code, answer.withheld)
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{onHot(hotRule(t, "r", "GET /s", byAll, 1, 1))}}, WithSharer(s))
	f.heat(t, "r GET /s?q=1")
	r := httptest.NewRequest(http.MethodGet, "/s?q=1", nil)
	r.Pattern = "GET /s"
	w = httptest.NewRecorder()
	f.Handler(routerLeader{okHandler, &router}).ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.String() != "handler" || !answer.withheld {
		t.Errorf("%d %s, withheld %t", w.Code, w.Body, answer.withheld)
	}
}

// A request that is not HTTP is answered together with others if a rule names its resource.
func TestShareResources(t *testing.T) {
	s := &testSharer{share: func(_ *http.Request, key string, _ http.Header, admit func(bool) (http.Handler, bool)) Shared {
		if _, ok := admit(false); !ok {
			return Shared{Outcome: Refused}
		}
		return Shared{Outcome: Led, Status: 200, Body: []byte(key)}
	}}
	named, any := onHot(hotRule(t, "named", "shop.Search/Find", byAll, 1, 1)), onHot(hotRule(t, "any", "*", byAll, 1, 1))
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{named, any}}, WithSharer(s))
	f.heat(t, "named shop.Search/Find", "any shop.Search/List")
	ask := func(resource string) (Shared, rules.Decision) {
		req := Request{Pattern: resource, Steps: CountStep}
		d, _ := f.Begin(req)
		if d.Reason != rules.ReasonShared {
			t.Fatalf("%s: %+v", resource, d)
		}
		shared := f.Share(&Exchange{Request: req, Lead: func() http.Handler { return okHandler }}, &d)
		return shared, d
	}
	if shared, _ := ask("shop.Search/Find"); shared.Outcome != Led || string(shared.Body) != "named shop.Search/Find" {
		t.Errorf("%+v", shared)
	}
	if shared, d := ask("shop.Search/Find"); shared.Outcome != Refused || d.Allowed || d.RetryAfter == 0 {
		t.Errorf("beyond the limit: %+v, %+v", shared, d)
	}
	if shared, d := ask("shop.Search/List"); shared.Outcome != Alone || !d.Allowed {
		t.Errorf("a rule for all: %+v", shared)
	}
	if shared := f.Share(new(Exchange), new(rules.Decision)); shared.Outcome != Alone {
		t.Errorf("a request that is not for sharing: %+v", shared)
	}
}
