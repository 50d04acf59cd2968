package middlewaretest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/middleware"
)

var onHotCases = []Case{
	{"together", testTogether},
	{"together: nothing of a user", testNothingOfAUser},
	{"together: alone", testAlone},
	{"together: middleware in front", testFront},
	{"together: refused", testRefusedTogether},
	{"together: panics", testPanicsTogether},
	{"together: HEAD and conditions", testConditions},
	{"together: client that leaves", testLeavesTogether},
	{"together: time that ends", testDeadline},
	{"together: compression", testCompression},
	{"together: invalidated", testInvalidated},
}

// hotItem is a key of the rule that startHot has.
const hotItem = "items GET /items/{id}?path:id=7"

// startHot starts a server whose rule admits burst requests for the hot item 7. They share answers
// for longer than the test.
func startHot(t *testing.T, s Start, burst int, onHot string, handler http.Handler) *fixture {
	t.Helper()
	return startHotServer(t, s, Server{
		Routes: []Route{
			{Method: "GET", Pattern: "/items/{id}", Handler: handler},
			{Method: "POST", Pattern: "/items/{id}", Handler: handler},
		},
		Context: func(ctx context.Context, h http.Header) context.Context {
			return context.WithValue(ctx, userKey{}, h.Get("X-User"))
		},
	}, burst, onHot)
}

func startHotServer(t *testing.T, s Start, server Server, burst int, onHot string) *fixture {
	t.Helper()
	f := startWith(t, s, server, fmt.Sprintf(`
		{id: items, match: {route: "GET /items/{id}"}, by: ["path:id"], hot: 1000000/s, limit: {rate: 1/1h, burst: %d}, on_hot: {cache: 1m, wait: 10s%s}}
		{id: units, match: {route: "GET /items/{id}"}, by: [page], count: units, hot: 1000000/s}`, burst, onHot))
	Heat(t, f.guard, hotItem)
	return f
}

// as sends a GET request with these headers: a name, a value, and so on.
func (f *fixture) as(method, target string, header ...string) response {
	f.t.Helper()
	req := f.request(f.t.Context(), method, target, nil)
	for pair := range slices.Chunk(header, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	return f.do(req)
}

// Identical requests run the handler once and take one token, and the run's cost is charged once.
func testTogether(t *testing.T, s Start) {
	g := newGate()
	f := new(fixture)
	f = startHot(t, s, 1, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		g.wait()
		middleware.AddCost(r.Context(), 5)
		w.Header().Set("X-Item", r.PathValue("id"))
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "item "+r.PathValue("id")+" "+r.URL.RawQuery)
	}))
	const target = "/items/7?page=2"
	requests := []<-chan response{f.background(f.request(t.Context(), "GET", target, nil))}
	f.awaitEntry(g)
	for range 3 {
		requests = append(requests, f.background(f.request(t.Context(), "GET", target, nil)))
	}
	time.Sleep(20 * time.Millisecond) // they join, or come later and find the answer
	close(g.open)
	for i, done := range requests {
		if a := f.result(done); a.status != http.StatusOK || a.body != "item 7 page=2" || a.header.Get("X-Item") != "7" {
			t.Errorf("request %d: %+v", i, a)
		}
	}
	if a := f.get(target); a.body != "item 7 page=2" || a.header.Get("X-Item") != "7" || a.header.Get("Age") == "" || !strings.HasPrefix(a.header.Get("Cache-Status"), "hotparam; hit") {
		t.Errorf("from memory: %+v", a)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
	counts := f.counted()
	if n := counts["GET /items/{id}?path:id=7"]; n != 5 {
		t.Errorf("%d requests were counted, want 5", n)
	}
	if n := counts["GET /items/{id}?page=2"]; n != 5 {
		t.Errorf("%d units were counted, want 5 of one run", n)
	}
}

// The handler of a run sees nothing that is not in the key, and no answer crosses a key.
func testNothingOfAUser(t *testing.T, s Start) {
	f := startHot(t, s, 9, `, vary: ["header:accept-language", "cookie:currency"]`, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := r.Context().Value(userKey{}).(string)
		var names []string
		for name := range r.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		fmt.Fprintf(w, "%s|%s|%s|%s|%s|%s", r.PathValue("id"), user, r.Header.Get("X-User"), r.Header.Get("Accept-Language"), r.Header.Get("Cookie"), names)
	}))
	for _, user := range []string{"ann", "bob"} {
		for _, language := range []string{"de", "fr"} {
			a := f.as("GET", "/items/7", "X-User", user, "Accept-Language", language, "Cookie", "session="+user+"; currency=EUR", "X-Forwarded-For", "192.0.2.1")
			if want := "7|||" + language + "|currency=EUR|[Accept-Language Cookie]"; a.body != want {
				t.Errorf("%s in %s: %d %q, want %q", user, language, a.status, a.body, want)
			}
		}
	}
	if a := f.as("GET", "/items/8", "X-User", "ann"); !strings.HasPrefix(a.body, "8|ann|ann|") {
		t.Errorf("an item that is not hot: %+v", a)
	}
}

// A request that is not for sharing, or whose answer is not, is answered as without on_hot.
func testAlone(t *testing.T, s Start) {
	f := new(fixture)
	f = startHot(t, s, 6, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		user, _ := r.Context().Value(userKey{}).(string)
		if r.URL.Query().Has("own") {
			w.Header().Set("Cache-Control", "private")
		}
		w.Header().Set("X-Method", r.Method)
		fmt.Fprintf(w, "%s %s %s%s", r.Method, user, r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	}))
	for _, c := range []struct{ method, target, name, value, want, reason string }{
		{"GET", "/items/7", "Cookie", "session=ann", "GET ann session=ann", "cookie"},
		{"GET", "/items/7", "Authorization", "Bearer ann", "GET ann Bearer ann", "authorization"},
		{"GET", "/items/7", "Cache-Control", "no-cache", "GET ann ", "request-no-cache"},
		{"POST", "/items/7", "X-Other", "1", "POST ann ", ""},
		{"GET", "/items/7?own", "X-Other", "1", "GET ann ", "private"}, // one more run, for all
		{"GET", "/items/7?own", "X-Other", "1", "GET ann ", "private"},
	} {
		a := f.as(c.method, c.target, "X-User", "ann", c.name, c.value)
		if a.status != http.StatusOK || a.body != c.want {
			t.Errorf("%s with %s: %+v", c.target, c.name, a)
		}
		if _, detail, _ := strings.Cut(a.header.Get("Cache-Status"), "detail="); detail != c.reason {
			t.Errorf("%s with %s: Cache-Status %q, want %s", c.target, c.name, a.header.Get("Cache-Status"), c.reason)
		}
	}
	if a := f.as("GET", "/items/7", "Cookie", "session=bob"); a.status != http.StatusTooManyRequests {
		t.Errorf("beyond the limit: %+v", a)
	}
	if n := f.calls.Load(); n != 7 {
		t.Errorf("the handler was called %d times, want 7", n)
	}
}

// A miss beyond the limit is refused. Answers in memory are still served.
func testRefusedTogether(t *testing.T, s Start) {
	f := startHot(t, s, 1, "", text("item"))
	f.wantStatus("/items/7", 200, 200)
	a := f.get("/items/7?page=2")
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a miss: %+v", a)
	}
	f.wantStatus("/items/7", 200)
}

// If a run panics, each request that waited for it runs the handler by itself.
func testPanicsTogether(t *testing.T, s Start) {
	f := startHot(t, s, 9, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("X-User")
		if user == "" {
			panic("the handler's own")
		}
		_, _ = io.WriteString(w, user)
	}))
	for _, user := range []string{"ann", "bob"} {
		if a := f.as("GET", "/items/7", "X-User", user); a.status != http.StatusOK || a.body != user {
			t.Errorf("%+v", a)
		}
	}
	if st := f.guard.Stats(); st.Panics != 0 {
		t.Errorf("%d panics counted as the guard's", st.Panics)
	}
}

// The client whose request leads may leave. The others receive the answer.
func testLeavesTogether(t *testing.T, s Start) {
	g := newGate()
	f := new(fixture)
	f = startHot(t, s, 1, "", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		f.calls.Add(1)
		g.wait()
		_, _ = io.WriteString(w, "item")
	}))
	ctx, cancel := context.WithCancel(t.Context())
	first := f.background(f.request(ctx, "GET", "/items/7", nil))
	f.awaitEntry(g)
	second := f.background(f.request(t.Context(), "GET", "/items/7", nil))
	cancel()
	f.result(first)
	time.Sleep(20 * time.Millisecond) // the server may notice
	close(g.open)
	if a := f.result(second); a.status != http.StatusOK || a.body != "item" {
		t.Errorf("%+v", a)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

// A request whose context ends while it waits for the answer is not answered by success.
func testDeadline(t *testing.T, s Start) {
	g := newGate()
	f := new(fixture)
	f = startHotServer(t, s, Server{
		Routes: []Route{{Method: "GET", Pattern: "/items/{id}", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			f.calls.Add(1)
			g.wait()
			_, _ = io.WriteString(w, "item")
		})}},
		Context: func(ctx context.Context, h http.Header) context.Context {
			if h.Get("X-Short") == "" {
				return ctx
			}
			ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			context.AfterFunc(ctx, cancel)
			return ctx
		},
	}, 1, "")
	if a := f.as("GET", "/items/7", "X-Short", "1"); a.status != http.StatusServiceUnavailable || a.body != "" {
		t.Errorf("%+v", a)
	}
	close(g.open)
	if a := f.get("/items/7"); a.status != http.StatusOK || a.body != "item" {
		t.Errorf("afterwards: %+v", a)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

// A request that changes the item drops its answers.
func testInvalidated(t *testing.T, s Start) {
	f := new(fixture)
	f = startHot(t, s, 9, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			f.calls.Add(1)
		}
		fmt.Fprint(w, f.calls.Load())
	}))
	for i, method := range []string{"GET", "GET", "POST", "GET", "GET"} {
		if a, want := f.send(method, "/items/7"), fmt.Sprint(i/2-i/4); a.body != want {
			t.Errorf("%s: %+v, want %s", method, a, want)
		}
	}
}
