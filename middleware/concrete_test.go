//go:build !race

// These tests use a single goroutine, so they run only without the race detector.

package middleware

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// Routes that look like paths are counted, and logged once when they are too many to be intended.
func TestConcreteRoutes(t *testing.T) {
	var log strings.Builder
	rules := rules.Rules{Rules: []rules.Rule{
		hotRule(t, "users", "GET /u/{id}", byAll, 1000, 1),
		hotRule(t, "files", "/files/{name...}", byAll, 1000, 1),
		hotRule(t, "all", "*", byAll, 1000, 1),
		hotRule(t, "exact", "GET /u/me", byAll, 1000, 1),
	}}
	f := newFixture(t, rules, WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	ask := func(method, pattern string) {
		f.Check(Request{Method: method, Pattern: pattern, Path: "/x"})
	}
	want := func(concrete int64, lines int) {
		t.Helper()
		if got := f.Stats().Concrete; got != concrete {
			t.Errorf("%d concrete routes, want %d", got, concrete)
		}
		if got := strings.Count(log.String(), "\n"); got != lines {
			t.Errorf("%d lines, want %d: %s", got, lines, &log)
		}
	}
	for _, pattern := range []string{"GET /u/{id}", "/u/{id}", "/u/", "/u/7/8", "/v/7", "GET /v/7", "GET /{$}", "", "search", "/files/{name...}"} {
		ask(http.MethodGet, pattern)
	}
	ask(http.MethodPost, "/u/7") // the template is for GET
	for i := range 2 * maxConcrete {
		ask(http.MethodGet, fmt.Sprint("/files/a/", i)) // the wildcard is of the rest
	}
	want(0, 0)
	ask(http.MethodGet, "/u/me")
	ask(http.MethodGet, "GET /u/me")
	ask(http.MethodGet, "GET example.com/u/me")
	ask(http.MethodHead, "/u/me")
	ask(http.MethodGet, "/u/me") // known
	want(4, 0)
	for i := range maxConcrete - 4 {
		ask(http.MethodGet, fmt.Sprint("/u/", i))
	}
	want(maxConcrete, 0)
	ask(http.MethodGet, "/u/%61")
	want(maxConcrete+1, 1)
	if text := log.String(); !strings.Contains(text, "rule=users") || !strings.Contains(text, "WithRoute") || strings.Contains(text, "/u/a") {
		t.Errorf("logged: %s", text)
	}
	for i := range 2 * maxNames {
		ask(http.MethodGet, fmt.Sprint("/u/more-", i))
	}
	if got := f.Stats().Concrete; got < maxNames/2 || got > maxNames {
		t.Errorf("%d concrete routes, want those that the cache had room for", got)
	}
	want(f.Stats().Concrete, 2)
	if text := log.String(); strings.Count(text, "too many routes") != 1 {
		t.Errorf("logged: %s", text)
	}
}

// Whatever the routes have in common, it is logged once when there is no room for more.
func TestTooManyRoutes(t *testing.T) {
	for name, ask := range map[string]func(*fixture, string){
		"patterns":  func(f *fixture, name string) { f.Check(Request{Method: "GET", Pattern: "/" + name}) },
		"resources": func(f *fixture, name string) { f.Enter(t.Context(), name) },
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "all", "*", byAll, 1000, 1)}},
				WithLog(slog.New(slog.NewTextHandler(&log, nil))))
			for i := range maxNames {
				ask(f, fmt.Sprint(i))
			}
			f.Check(Request{Method: "PURGE", Pattern: "/1"})
			if ask(f, "1"); log.Len() > 0 {
				t.Errorf("logged with room: %s", &log)
			}
			ask(f, "one")
			ask(f, "two")
			if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "too many routes") {
				t.Errorf("logged: %s", &log)
			}
		})
	}
}

// A resource that is spelled like a path of a template counts as one, too.
func TestConcreteResources(t *testing.T) {
	var log strings.Builder
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "users", "GET /u/{id}", byAll, 1000, 1)}},
		WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	for i := range maxConcrete {
		f.Enter(t.Context(), fmt.Sprint("GET /u/", i))
		f.Enter(t.Context(), fmt.Sprint("mail-", i))
	}
	f.Enter(t.Context(), "POST /u/7")
	if got := f.Stats().Concrete; got != maxConcrete || log.Len() > 0 {
		t.Errorf("%d, want %d; logged: %s", got, maxConcrete, &log)
	}
	f.Enter(t.Context(), "/u/7")
	if got := f.Stats().Concrete; got != maxConcrete+1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%d, want %d; logged: %s", got, maxConcrete+1, &log)
	}
}

// However often rules are reloaded, the number of logged lines is bounded.
func TestConcreteRoutesAreLoggedRarely(t *testing.T) {
	var log strings.Builder
	rules := func() *rules.Rules {
		return &rules.Rules{Namespace: "test", Rules: []rules.Rule{hotRule(t, "users", "GET /u/{id}", byAll, 1000, 1)}}
	}
	f := newFixture(t, *rules(), WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	for range 3 * concreteLines.Burst {
		for i := range maxConcrete + 1 {
			f.Check(Request{Method: "GET", Pattern: fmt.Sprint("/u/", i)})
		}
		if err := f.Reload(rules()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(log.String(), "\n"); got != concreteLines.Burst {
		t.Errorf("%d lines, want %d", got, concreteLines.Burst)
	}
}

// Clients choose methods. They can neither grow the cache without bound nor keep the common
// methods out of it.
func TestRoutesAreBounded(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}})
	for i := range 10_000 {
		f.Check(Request{Method: fmt.Sprintf("M%d", i), Path: "/s", Query: "q=1", Pattern: "/s"})
		f.Check(Request{Method: "GET", Path: "/s", Pattern: fmt.Sprintf("/p%d", i)})
		f.Enter(t.Context(), fmt.Sprintf("resource%d", i))
		if i%300 == 0 {
			f.keyCounts()
		}
	}
	if f.rules.Load().routes.lookup("GET", "/s") != nil {
		t.Fatal("GET is known before it came")
	}
	f.Check(search)
	f.Check(get("/s", "/s", "q=1"))
	if f.rules.Load().routes.lookup("GET", "/s") == nil {
		t.Error("made-up methods keep GET out")
	}
	f.keyCounts()
	f.Check(Request{Method: "M9999", Path: "/s", Query: "q=1", Pattern: "/s"})
	if got := f.keys(); len(got) != 1 || got[0] != "r M9999 /s?q=1" {
		t.Errorf("counted %q", got)
	}
	for name, cache := range map[string]*routeCache[route]{"patterns": &f.rules.Load().routes, "resources": &f.rules.Load().resources} {
		routes := 0
		for _, of := range *cache.known.Load() {
			routes += len(of)
		}
		if routes > maxNames+2*maxMethods {
			t.Errorf("%d routes of %s are kept", routes, name)
		}
	}
}
