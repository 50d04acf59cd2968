//go:build real

package rls

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
)

// behindEnvoy is an application behind a real Envoy that asks a door.
type behindEnvoy struct {
	*fixture
	envoy  *real.Gateway
	link   *testenv.Relay // between Envoy and the door
	served atomic.Int64   // requests that came to the application
	within chan struct{}  // a request to /slow ends when it can receive
}

// patient replaces the configuration's timeouts of 20 ms to half a second, after which requests
// pass undecided. Tests of decisions use longer ones, as a busy machine is slow.
var patient = map[string]string{"timeout: 0.02s": "timeout: 20s", "timeout: 0.5s": "timeout: 20s"}

// startEnvoy starts Envoy with the configuration that users get, except for its timeouts.
func startEnvoy(t *testing.T, rules []string, times map[string]string, change ...func(*gateway.DoorConfig)) *behindEnvoy {
	t.Helper()
	e := &behindEnvoy{fixture: open(t, rules, change...), within: make(chan struct{})}
	e.link = testenv.NewRelay(t, e.Addr)
	app := httptest.NewServer(e)
	t.Cleanup(app.Close)
	values := map[string]string{
		"#units# ":                          "", //nolint:gocritic // what users may uncomment, with its space
		real.EnvoyAddress("127.0.0.1:8080"): real.EnvoyAddress(strings.TrimPrefix(app.URL, "http://")),
		real.EnvoyAddress("127.0.0.1:9131"): real.EnvoyAddress(e.link.Addr()),
	}
	maps.Copy(values, times)
	e.envoy = real.Envoy(t, "envoy", values)
	e.Await("question of Envoy", func() bool { e.get("/ready"); return e.Figures().Passed > 0 })
	return e
}

// ServeHTTP implements [http.Handler] for the application.
func (e *behindEnvoy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.served.Add(1)
	if cost := r.URL.Query().Get("cost"); cost != "" {
		w.Header().Set("X-Cost", cost)
	}
	if r.URL.Path == "/slow" {
		select {
		case <-e.within:
		case <-r.Context().Done():
		}
	}
	n, _ := strconv.Atoi(r.URL.Query().Get("bytes"))
	_, _ = w.Write(make([]byte, n))
}

// got is a response.
type got struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

// get sends a request through Envoy, with headers "name: value".
func (e *behindEnvoy) get(target string, header ...string) got {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.envoy.Addr+target, http.NoBody)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	begin := time.Now()
	response, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		e.t.Errorf("%s: %v", target, err)
		return got{}
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return got{response.StatusCode, response.Header, string(body), time.Since(begin)}
}

// raw sends a request unchanged and returns the status line of the response.
func (e *behindEnvoy) raw(text string) string {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.envoy.Addr)
	if err != nil {
		e.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, text)
	line := make([]byte, 16)
	n, _ := io.ReadAtLeast(conn, line, 12)
	return string(line[:n])
}

const envoyRules = `{id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 2/1h, burst: 2}, block: {q: bad}}`

func TestEnvoy(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t, []string{envoyRules,
		`{id: slots, match: {route: "GET /slow"}, by: [q], limit: {concurrency: 2}}`,
		`{id: bytes, match: {route: "GET /file"}, by: [q], count: bytes, limit: {rate: 1000/1h, burst: 1000}}`,
		`{id: units, match: {route: "GET /report"}, by: [q], count: units, limit: {rate: 100/1h, burst: 100}}`,
		`{id: key, match: {route: "GET /key"}, by: ["header:x-api-key"], limit: {rate: 1/1h, burst: 1}}`,
		`{id: calls, match: {route: "POST /shop.Search/Find"}, limit: {rate: 1/1h, burst: 1}}`}, patient)
	t.Run("refusals", e.testRefusals)
	t.Run("evasions", e.testEvasions)
	t.Run("costs", e.testCosts)
	t.Run("concurrency", e.testConcurrency)
}

func (e *behindEnvoy) testRefusals(t *testing.T) {
	e.t = t
	for range 2 {
		if r := e.get("/search?q=a"); r.status != 200 || r.header.Get("RateLimit") == "" {
			t.Errorf("%+v, want it to pass with RateLimit", r)
		}
	}
	before := e.served.Load()
	r := e.get("/search?q=a&page=2")
	if r.status != 429 || !strings.Contains(r.body, `"violated-policies":["search"]`) || r.header.Get("Content-Type") != "application/problem+json" ||
		r.header.Get("Retry-After") == "" || r.header.Get("RateLimit-Policy") == "" || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%+v, want a whole refusal", r)
	}
	if r := e.get("/search?q=bad"); r.status != 403 || !strings.Contains(r.body, `"status":403`) {
		t.Errorf("%+v, want 403 for a blocked value", r)
	}
	if r := e.get("/search?q=b"); r.status != 200 {
		t.Errorf("%+v, want another value to pass", r)
	}
	if n := e.served.Load() - before; n != 1 {
		t.Errorf("%d requests came to the application, want 1", n)
	}
}

func (e *behindEnvoy) testEvasions(t *testing.T) {
	e.t = t
	e.get("/search?q=c")
	e.get("/search?q=c")
	for _, target := range []string{"//search?q=c", "/x/../search?q=c", "/search;v=1?q=%63", "/./search?q=c&q=c2", "/%73earch?q=c"} {
		if r := e.get(target); r.status != 429 {
			t.Errorf("%s: %d after %v, want 429; %+v, %+v", target, r.status, r.took, e.Figures(), e.Guard.Stats().Guard)
		}
	}
	for _, h := range []string{"X-Api-Key: \xff\xfe", "Content-Type: \xff"} {
		if line := e.raw("GET /search?q=c HTTP/1.1\r\nHost: a\r\n" + h + "\r\n\r\n"); !strings.Contains(line, " 429") && !strings.Contains(line, " 400") {
			t.Errorf("%q: %q: a header that is not UTF-8 evades the limit", h, line)
		}
	}
}

func (e *behindEnvoy) testCosts(t *testing.T) {
	e.t = t
	for _, c := range []struct{ first, next string }{{"/file?q=a&bytes=5000", "/file?q=a"}, {"/report?q=a&cost=500", "/report?q=a"}} {
		ended := e.Tickets.Stats().Ended
		if r := e.get(c.first); r.status != 200 {
			t.Errorf("%s: %+v", c.first, r)
		}
		e.Await("end", func() bool { return e.Tickets.Stats().Ended > ended })
		if r := e.get(c.next); r.status != 429 {
			t.Errorf("%s: %+v, want the cost to be charged", c.next, r)
		}
	}
	if s := e.Tickets.Stats(); s.Held != 0 {
		t.Errorf("%+v", s)
	}
}

func (e *behindEnvoy) testConcurrency(t *testing.T) {
	e.t = t
	var requests sync.WaitGroup
	before := e.served.Load()
	for range 2 {
		requests.Go(func() {
			if r := e.get("/slow?q=a"); r.status != 200 {
				t.Errorf("%+v", r)
			}
		})
	}
	e.Await("two requests", func() bool { return e.served.Load() == before+2 })
	if r := e.get("/slow?q=a"); r.status != 503 || r.header.Get("Retry-After") == "" {
		t.Errorf("%+v, want 503: there are two at a time", r)
	}
	e.within <- struct{}{}
	e.within <- struct{}{}
	requests.Wait()
	e.Await("end", func() bool { return e.Tickets.Stats().Held == 0 })
	// A client that disconnects also ends its request.
	conn, err := net.Dial("tcp", e.envoy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /slow?q=a HTTP/1.1\r\nHost: a\r\n\r\n")
	e.Await("request", func() bool { return e.served.Load() == before+3 })
	conn.Close()
	e.Await("end", func() bool { return e.Tickets.Stats().Held == 0 })
}

// While the door is unavailable or hangs, requests pass within Envoy's timeout. Once it is back,
// they are limited again.
func TestEnvoyWithoutTheDoor(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t, []string{envoyRules}, nil)
	isLimited := func() bool { return e.get("/search?q=a").status == http.StatusTooManyRequests }
	e.Await("limit", isLimited)
	for name, state := range map[string]testenv.LinkState{"away": testenv.LinkCut, "hanging": testenv.LinkSilent} {
		e.link.Set(state)
		e.Await("request that passes without an answer", func() bool { return !isLimited() })
		var longest time.Duration
		for range 20 {
			r := e.get("/search?q=a")
			if r.status != http.StatusOK {
				t.Errorf("%s: %d, want requests to pass", name, r.status)
			}
			longest = max(longest, r.took)
		}
		e.link.Set(testenv.LinkUp)
		begin := time.Now()
		e.Await("limit", isLimited)
		t.Logf("%s: a request took %v at most; limited again after %v", name, longest, time.Since(begin))
		if longest > 5*time.Second {
			t.Errorf("%s: a request took %v", name, longest)
		}
	}
}

// A gRPC client gets the status of a limit, and a sentence.
func TestEnvoyAndGRPC(t *testing.T) {
	t.Parallel()
	e := startEnvoy(t, []string{`{id: find, match: {route: "POST /shop.Search/Find"}, limit: {rate: 1/1h, burst: 1}}`,
		`{id: no, match: {route: "POST /shop.Search/Find"}, by: ["header:x-api-key"], limit: {rate: 1000/s}, block: {"header:x-api-key": bad}}`}, patient)
	client := dial(t, e.envoy.Addr)
	call := func(key string) *status.Status {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-api-key", key), 10*time.Second)
		defer cancel()
		return status.Convert(client.Invoke(ctx, "/shop.Search/Find", new(emptypb.Empty), new(emptypb.Empty)))
	}
	if s := call("a"); s.Code() == codes.ResourceExhausted {
		t.Errorf("%v, want the first call to pass", s)
	}
	if s := call("a"); s.Code() != codes.ResourceExhausted || !strings.HasPrefix(s.Message(), "too many requests for these parameters; retry in ") {
		t.Errorf("%v", s)
	}
	if s := call("bad"); s.Message() != "not allowed" {
		t.Errorf("%v, want a sentence for a blocked value", s)
	} else {
		t.Logf("blocked: %v", s)
	}
}
