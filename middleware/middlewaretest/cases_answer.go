package middlewaretest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

var answerCases = []Case{
	{"refused", testRefused},
	{"own refusal", testOwnRefusal},
	{"blocked", testBlocked},
	{"skipped", testSkipped},
	{"rate limit headers", testRateLimitHeaders},
	{"waited", testWaited},
	{"served", testServed},
	{"cancelled while it waits", testCancelled},
}

const oneAnHour = `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}}`

func testRefused(t *testing.T, s Start) {
	f := start(t, s, oneAnHour, shopRoutes)
	f.wantStatus("/search?q=phone", 200)
	a := f.get("/search?q=phone")
	if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, headers %v", a.status, a.header)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("type %q", got)
	}
	var problem struct {
		Type   string
		Status int
	}
	if err := json.Unmarshal([]byte(a.body), &problem); err != nil || problem.Status != http.StatusTooManyRequests ||
		!strings.HasSuffix(problem.Type, "#quota-exceeded") {
		t.Errorf("body %q", a.body)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times, for one request that passed", n)
	}
	f.wantStatus("/search?q=boat", 200)
}

func testOwnRefusal(t *testing.T, s Start) {
	f := start(t, s, oneAnHour, shopRoutes, middleware.WithLimited(func(w http.ResponseWriter, r *http.Request, d rules.Decision) {
		w.Header().Set("X-Rule", d.Rule)
		http.Error(w, "later: "+r.URL.Path, http.StatusServiceUnavailable)
	}))
	f.wantStatus("/search?q=phone", 200)
	if a := f.get("/search?q=phone"); a.status != http.StatusServiceUnavailable || a.header.Get("X-Rule") != "terms" || a.body != "later: /search\n" {
		t.Errorf("%+v", a)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

func testBlocked(t *testing.T, s Start) {
	f := start(t, s, `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 9}, block: {q: bad}}`, shopRoutes)
	f.wantStatus("/search?q=bad", 403)
	f.wantStatus("/search?q=good", 200)
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

func testSkipped(t *testing.T, s Start) {
	f := start(t, s, oneAnHour, shopRoutes, middleware.WithSkip(func(r *http.Request) bool { return r.Header.Get("X-Probe") != "" }))
	f.wantStatus("/search?q=phone", 200, 429)
	req := f.request(t.Context(), "GET", "/search?q=phone", nil)
	req.Header.Set("X-Probe", "1")
	if a := f.do(req); a.status != http.StatusOK {
		t.Errorf("a request that is skipped: status %d", a.status)
	}
}

func testRateLimitHeaders(t *testing.T, s Start) {
	f := start(t, s, `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 2}}`, shopRoutes, middleware.WithHeaders())
	for i, want := range []string{`"terms";r=1`, `"terms";r=0`, `"terms";r=0`} {
		a := f.get("/search?q=phone")
		if got := a.header.Values("RateLimit"); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("answer %d: RateLimit %q, want %s…", i, got, want)
		}
		if got := a.header.Values("RateLimit-Policy"); len(got) != 1 || !strings.HasPrefix(got[0], `"terms";q=2;w=`) {
			t.Errorf("answer %d: RateLimit-Policy %q", i, got)
		}
	}
}

func testWaited(t *testing.T, s Start) {
	f := start(t, s, `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 10/s, burst: 1, wait: 5s}}`, shopRoutes)
	begin := time.Now()
	f.wantStatus("/search?q=phone", 200, 200, 200)
	if took := time.Since(begin); took < 190*time.Millisecond { // two waits of 100 ms, since the limits' clock is coarser
		t.Errorf("three requests at 10/s took %v", took)
	}
	if n := f.guard.Stats().Waited; n < 1 || f.calls.Load() != 3 { // a slow client needs no wait
		t.Errorf("%d requests waited, the handler was called %d times", n, f.calls.Load())
	}
}

func testServed(t *testing.T, s Start) {
	f := start(t, s, `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1, serve: {status: 203, type: application/json, body: "[]"}}}
		{id: users, match: {route: "GET /u/{id}"}, by: ["path:id"], limit: {rate: 1/1h, burst: 1, on_limit: serve}}`,
		shopRoutes, middleware.WithServe("users", text("from a cache")))
	f.wantStatus("/search?q=phone", 200)
	if a := f.get("/search?q=phone"); a.status != http.StatusNonAuthoritativeInfo || a.body != "[]" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", a)
	}
	f.wantStatus("/u/7", 200)
	if a := f.get("/u/7"); a.status != http.StatusOK || a.body != "from a cache" {
		t.Errorf("by a handler: %+v", a)
	}
	if n := f.calls.Load(); n != 2 {
		t.Errorf("the handler was called %d times", n)
	}
}

// A client that disconnects while its request waits ends the wait. The handler is not called.
func testCancelled(t *testing.T, s Start) {
	f := start(t, s, `{id: terms, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1m, burst: 1, wait: 10m}}`, shopRoutes)
	f.wantStatus("/search?q=phone", 200)
	ctx, cancel := context.WithCancel(t.Context())
	done := f.background(f.request(ctx, "GET", "/search?q=phone", nil))
	time.AfterFunc(50*time.Millisecond, cancel) // the request waits, or has not been sent
	if a := f.result(done); a.status != 0 {
		t.Errorf("status %d", a.status)
	}
	// This request was sent for sure: its connection is closed while it waits.
	conn := f.dial()
	if _, err := conn.Write([]byte("GET /search?q=phone HTTP/1.1\r\nHost: suite\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	conn.Close()
	f.await("a request that is gone", func() bool { return f.guard.Stats().Gone >= 1 })
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}
