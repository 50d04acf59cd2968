//go:build real

package spoe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

// haproxy starts HAProxy, configured by deploy/gateways/haproxy/spoe, in front of an application.
// A busy machine may be slow, so tests that do not need the file's timeout use another.
func (f *fixture) haproxy(app http.Handler, environment ...string) *real.Gateway {
	f.t.Helper()
	server := httptest.NewServer(app)
	f.t.Cleanup(server.Close)
	if len(environment) == 0 {
		environment = []string{"HOTPARAM_TIMEOUT=10s"}
	}
	environment = append([]string{"APP=" + strings.TrimPrefix(server.URL, "http://"), "HOTPARAM_SPOE=" + f.Addr}, environment...)
	h := real.HAProxyProgram(f.program).Start(f.t, "gateways/haproxy/spoe/haproxy.cfg", environment...)
	f.Await("HAProxy's health check", func() bool { return f.door.healthchecks.Load() > 0 })
	return h
}

// client sends requests to HAProxy.
type client struct {
	t    *testing.T
	addr string
}

// get returns the answer to a GET with these headers, and its body.
func (c client) get(target string, header ...string) (*http.Response, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+c.addr+target, http.NoBody)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(body)
}

// statuses returns the statuses of n equal requests.
func (c client) statuses(n int, target string, header ...string) (all []int) {
	c.t.Helper()
	for range n {
		res, _ := c.get(target, header...)
		all = append(all, res.StatusCode)
	}
	return all
}

// The files of deploy/, as users get them, work with the real HAProxy.
func TestHAProxy(t *testing.T) {
	t.Parallel()
	real.EachHAProxy(t, testHAProxy)
}

func testHAProxy(t *testing.T, program real.HAProxyProgram) {
	f := serve(t, nil, termRule, roomRule, byteRule, planRule, blockRule, serveRule)
	f.program = string(program)
	var served atomic.Int64
	entered, leave := make(chan struct{}), make(chan struct{})
	h := f.haproxy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		switch r.URL.Path {
		case "/file":
			w.Header().Set("Content-Length", "4000")
			w.Write(make([]byte, 4000))
		case "/room":
			if r.URL.Query().Has("wait") {
				close(entered)
				<-leave
			}
		}
		fmt.Fprint(w, "ok")
	}))
	c := client{t, h.Addr}
	for i := range 3 {
		res, body := c.get("/search?q=ph%6Fne")
		if want := fmt.Sprintf(`"terms";r=%d;t=`, 2-i); res.StatusCode != 200 || body != "ok" || !strings.HasPrefix(res.Header.Get("RateLimit"), want) {
			t.Fatalf("request %d: %s %q %v", i, res.Status, body, res.Header)
		}
	}
	res, body := c.get("//search?q=phone")
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "3600" || res.Header.Get("Content-Type") != "application/problem+json" ||
		res.Header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(res.Header.Get("RateLimit"), `"terms";r=0`) || res.Header.Get("RateLimit-Policy") == "" {
		t.Errorf("over the limit: %s %v", res.Status, res.Header)
	}
	var problem struct{ Status int }
	if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != 429 || strings.Contains(body, "%") {
		t.Errorf("the body %q: %v", body, err)
	}
	if got := c.statuses(1, "/search?q=other"); got[0] != 200 {
		t.Errorf("another value: %v", got)
	}
	if got := served.Load(); got != 4 {
		t.Errorf("%d requests came to the application, want 4", got)
	}
	if got := c.statuses(3, "/file?name=a"); !slices.Equal(got, []int{200, 429, 429}) {
		t.Errorf("a file of four times the limit: %v", got)
	}
	if got := c.statuses(2, "/plan", "X-Plan", "free"); !slices.Equal(got, []int{200, 429}) {
		t.Errorf("a plan: %v", got)
	}
	if got := c.statuses(1, "/plan", "X-Plan", "gold"); got[0] != 200 {
		t.Errorf("another plan: %v", got)
	}
	if res, body := c.get("/items?id=bad"); res.StatusCode != 403 || !strings.Contains(body, "Forbidden") {
		t.Errorf("a blocked value: %s %q", res.Status, body)
	}
	// A status that the configuration does not know is answered as 429.
	if got := c.statuses(2, "/teapot?id=a"); !slices.Equal(got, []int{200, 429}) {
		t.Errorf("an answer of the rule's own: %v", got)
	}

	go func() { // one request is in the application
		defer close(leave)
		<-entered
		if got := c.statuses(2, "/room?id=a"); !slices.Equal(got, []int{503, 503}) {
			t.Errorf("no room: %v", got)
		}
		if got := c.statuses(1, "/room?id=b"); got[0] != 200 {
			t.Errorf("another room: %v", got)
		}
	}()
	if got := c.statuses(1, "/room?id=a&wait=1"); got[0] != 200 {
		t.Errorf("the one in the room: %v", got)
	}
	<-leave
	if got := c.statuses(2, "/room?id=a"); !slices.Equal(got, []int{200, 200}) {
		t.Errorf("the room is free: %v", got)
	}
	if s, held := f.Figures(), f.Tickets.Stats(); held.Held != 0 || held.Unknown != 0 || held.Repeated != 0 || s.Faults[gateway.NoTicket] != 0 || s.Faults[gateway.Incomplete] != 0 || s.Faults[gateway.Invalid] != 0 || s.Closed[gateway.Invalid] != 0 {
		t.Errorf("%+v, %+v; the log:\n%s", s, held, f.Log)
	}
}

// A request cannot have so many headers that HAProxy accepts it but cannot ask about it: its
// client would evade every limit.
func TestHAProxyLongRequests(t *testing.T) {
	t.Parallel()
	real.EachHAProxy(t, testHAProxyLongRequests)
}

func testHAProxyLongRequests(t *testing.T, program real.HAProxyProgram) {
	f := serve(t, nil, termRule)
	f.program = string(program)
	h := f.haproxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c := client{t, h.Addr}
	c.statuses(3, "/search?q=phone")
	accepted := 0
	for _, n := range []int{1000, 8000, 12_000, 14_000, 14_500, 15_000, 15_200, 15_400, 16_000, 20_000} {
		long := strings.Repeat("a=b; ", n/5)
		for _, where := range []string{"X-Long", "Cookie", ""} {
			target, header := "/search?q=phone", make(http.Header)
			if where != "" {
				header.Set(where, long)
			} else {
				target += "&x=" + url.QueryEscape(long[:n/2])
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr+target, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = header
			res, err := http.DefaultClient.Do(req)
			if err != nil { // refused while it was written
				continue
			}
			res.Body.Close()
			switch res.StatusCode {
			case 429:
				accepted++
			case 400, 414, 431:
			default:
				t.Errorf("%q of %d bytes: %s", where, n, res.Status)
			}
		}
	}
	if accepted < 12 {
		t.Errorf("%d of the requests were asked about", accepted)
	}
}

// When the door is unavailable or hangs, requests pass. As soon as it is back, they are limited
// again.
func TestHAProxyFailsOpen(t *testing.T) {
	t.Parallel()
	real.EachHAProxy(t, testHAProxyFailsOpen)
}

func testHAProxyFailsOpen(t *testing.T, program real.HAProxyProgram) {
	f := serve(t, nil, termRule)
	f.program = string(program)
	h := f.haproxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "HOTPARAM_TIMEOUT=50ms")
	c := client{t, h.Addr}
	f.Await("the limit", func() bool { return c.statuses(1, "/search?q=phone")[0] == 429 })
	f.Stop()
	for range 5 {
		if got := c.statuses(1, "/search?q=phone"); got[0] != 200 {
			t.Errorf("the door is away: %v", got)
		}
	}
	hanging := gatewaytest.Listen(t, f.Addr) // the system accepts, and nothing answers
	if got := c.statuses(3, "/search?q=phone"); !slices.Equal(got, []int{200, 200, 200}) {
		t.Errorf("the door hangs: %v", got)
	}
	hanging.Close()
	f.ServeAgain(f.door)
	f.Await("limits after the door's return", func() bool { return c.statuses(1, "/search?q=phone")[0] == 429 })
}

// A connection that the network has dropped without an error is given up: once the link is back,
// requests are limited again.
func TestHAProxyGivesUpDeadConnections(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	link := testenv.NewRelay(t, f.Addr)
	h := f.haproxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "HOTPARAM_TIMEOUT=50ms", "HOTPARAM_SPOE="+link.Addr())
	c := client{t, h.Addr}
	limited := func() bool { return c.statuses(1, "/search?q=phone")[0] == 429 }
	f.Await("the limit", limited)
	for _, silent := range []time.Duration{100 * time.Millisecond, 2 * time.Second} { // unseen by health checks, and seen
		link.Set(testenv.LinkSilent)
		for begin := time.Now(); time.Since(begin) < silent; {
			if got := c.statuses(1, "/search?q=phone"); got[0] != 200 {
				t.Errorf("over a silent link: %v", got)
			}
		}
		link.Set(testenv.LinkUp)
		begin := time.Now()
		f.Await("limits over the link", limited)
		took := time.Since(begin)
		t.Logf("limited again %v after the link's return", took)
		if took > 5*time.Second {
			t.Errorf("limited again %v after the link's return", took)
		}
	}
}

// Many concurrent requests share few connections, and each gets its own answer.
func TestHAProxyPipelining(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, termRule)
	h := f.haproxy(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	c := client{t, h.Addr}
	const values, each = 20, 20
	var passed [values]atomic.Int64
	var group sync.WaitGroup
	for v := range values {
		for range 2 {
			group.Go(func() {
				for range each / 2 {
					res, err := http.Get(fmt.Sprintf("http://%s/search?q=%d", c.addr, v))
					if err != nil {
						t.Error(err)
						return
					}
					res.Body.Close()
					if res.StatusCode == 200 {
						passed[v].Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	for v := range values {
		if got := passed[v].Load(); got != 3 {
			t.Errorf("of value %d %d requests passed, want 3", v, got)
		}
	}
	if s := f.Figures(); s.Passed+s.Refused != values*each {
		t.Errorf("%+v", s)
	}
}
