//go:build real

package auth

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/middleware"
)

// realGateways are the gateways that are started with the files of deploy/gateways.
var realGateways = map[string]struct {
	start func(tb testing.TB, values map[string]string) *real.Gateway
	// timeout is the spelling, in the configuration, of the time after which requests pass.
	timeout string
	// without names the requests of the suite that the gateway does not pass to hotparam
	// unchanged.
	without []string
	// headers reports whether clients see the headers of the limit on requests that pass.
	headers bool
	// cleans reports whether the gateway cleans paths itself.
	cleans bool
	// failsClosed reports whether requests are refused while hotparam is unavailable.
	failsClosed bool
}{
	"nginx": {start: startNginx, timeout: "50ms", headers: true, without: []string{ // nginx refuses these itself
		"OPTIONS of the server", "broken escape in the path", "dots above the root", "8 KiB in a value", "8 KiB in the path",
	}},
	"nginx-njs": {start: startNginxNJS, timeout: "50ms", headers: true, without: []string{ // nginx refuses these itself
		"OPTIONS of the server", "broken escape in the path", "dots above the root", "8 KiB in a value", "8 KiB in the path",
	}},
	"traefik": {start: startTraefik, failsClosed: true, cleans: true, without: []string{
		"semicolons in the query",   // Traefik makes "&" of them, for hotparam and the application
		"broken escape in the path", // Traefik answers 400 to it
	}},
	"caddy": {start: startCaddy, timeout: "50ms", without: []string{"broken escape in the path"}}, // Caddy answers 400 to it
	"envoy": {start: startEnvoy, timeout: "0.02s", headers: true, cleans: true, without: []string{
		"non-ASCII, raw", "non-ASCII path, raw", "fragment", "OPTIONS of the server", // Envoy refuses these itself
		"header twice",              // Envoy joins the two
		"broken escape in the path", // the application, which is in Go, answers 400
	}},
}

func startNginx(tb testing.TB, values map[string]string) *real.Gateway {
	return real.Nginx(tb, "nginx", values)
}

func startNginxNJS(tb testing.TB, values map[string]string) *real.Gateway {
	return real.NginxNJS(tb, "nginx-njs", values)
}

func startTraefik(tb testing.TB, values map[string]string) *real.Gateway {
	return real.Traefik(tb, "traefik", values)
}

func startCaddy(tb testing.TB, values map[string]string) *real.Gateway {
	return real.Caddy(tb, "caddy", values)
}

func startEnvoy(tb testing.TB, values map[string]string) *real.Gateway {
	for _, addr := range []string{application0, door0} {
		values[real.EnvoyAddress(addr)] = real.EnvoyAddress(values[addr])
		delete(values, addr)
	}
	return real.Envoy(tb, "envoy-extauthz", values)
}

// The addresses in the configurations.
const (
	application0 = "127.0.0.1:8080"
	door0        = "127.0.0.1:9132"
)

// application is the application behind a gateway.
type application struct {
	addr   string
	served atomic.Int64
	close  func()
}

// startApplication starts an application that answers with the target that it received. It
// answers with a 403 of its own at /forbidden, and a 500 at /broken.
func startApplication(tb testing.TB) *application {
	tb.Helper()
	l := gatewaytest.Listen(tb, "127.0.0.1:0")
	a := &application{addr: l.Addr().String()}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.served.Add(1)
		switch r.URL.Path {
		case "/forbidden":
			http.Error(w, "not for you", http.StatusForbidden)
			return
		case "/broken":
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, body)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	a.close = func() { server.Close(); <-done }
	tb.Cleanup(a.close)
	return a
}

// setup is a gateway between clients and an application. The gateway asks a door.
type setup struct {
	*fixture
	app         *application
	gateway     *real.Gateway
	connections *countedListener // of the door
}

// setUp starts a gateway and its application. With patient set, the gateway does not let a
// request pass because the machine is slow.
func setUp(t testing.TB, name string, d *gateway.Decider, patient bool) *setup {
	t.Helper()
	s := &setup{app: startApplication(t)}
	s.connections = &countedListener{Listener: gatewaytest.Listen(t, "127.0.0.1:0")}
	s.fixture = serveOn(t, s.connections, d, gateway.DoorConfig{})
	values := map[string]string{application0: s.app.addr, door0: s.Addr}
	if patient && realGateways[name].timeout != "" {
		values[realGateways[name].timeout] = "20s"
	}
	s.gateway = realGateways[name].start(t, values)
	return s
}

func setUpRules(t testing.TB, name, rules string) *setup {
	t.Helper()
	d := gatewaytest.Open(t, rules, hotparam.WithMiddleware(middleware.WithHeaders())).Decider(t, gateway.Config{})
	return setUp(t, name, d, true)
}

// get sends a client's request to the gateway.
func (s *setup) get(line string, header ...string) reply {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.gateway.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return exchange(s.t, conn, line, header...)
}

func forEach(t *testing.T, run func(t *testing.T, name string)) {
	for name := range realGateways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, name)
		})
	}
}

// Through a real gateway, requests have the keys, and clients get the answers, that they would
// have with the Go middleware.
func TestRealSameKeys(t *testing.T) {
	forEach(t, func(t *testing.T, name string) {
		gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
			s := setUp(tb, name, d, true)
			return gatewaytest.DoorUnderTest{
				Without:   append([]string{"address", "IPv6 address", "address that a client claims"}, realGateways[name].without...),
				NoHeaders: !realGateways[name].headers,
				Cleans:    realGateways[name].cleans,
				Ask:       s.asClient,
			}
		})
	})
}

// asClient sends a request of the suite to the gateway.
func (s *setup) asClient(_ testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
	header := []string{"Content-Length: 0"}
	for name, values := range r.Header {
		for _, value := range values {
			header = append(header, name+": "+value)
		}
	}
	got := s.get(r.Method+" "+r.Target, header...)
	if got.status == http.StatusOK {
		return gatewaytest.DoorAnswer{Header: got.header}
	}
	return gatewaytest.DoorAnswer{Status: got.status, Header: got.header, Body: got.body}
}

// A gateway passes a refusal to the client unchanged, and adds nothing to a request that passes.
func TestRealAnswers(t *testing.T) {
	forEach(t, func(t *testing.T, name string) {
		s := setUpRules(t, name, `
  - {id: q, match: {route: "/search"}, by: [q], limit: {rate: 1/1h, burst: 1}, block: {q: blocked}}
  - {id: addr, match: {route: "GET /a"}, by: ["addr:ip"], limit: {rate: 1/1h, burst: 1}}
  - {id: busy, match: {route: "GET /busy"}, limit: {rate: 1/1h, burst: 1, serve: {status: 503, type: application/problem+json, body: '{"title":"$busy\\"}'}}}
`)
		if r := s.get("GET /search?q=a%20b"); r.status != http.StatusOK || r.body != "GET /search?q=a%20b " {
			t.Errorf("a request that passes: %+v", r)
		}
		r := s.get("GET /search?q=a+b")
		if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") == "" || r.header.Get("Content-Type") != "application/problem+json" ||
			r.header.Get("RateLimit") == "" || r.header.Get("RateLimit-Policy") != `"q";q=1;w=3600` || r.header.Get("Cache-Control") != "no-store" ||
			!strings.Contains(r.body, `"violated-policies":["q"]`) {
			t.Errorf("a request that is refused: %+v", r)
		}
		if r := s.get("GET /search?q=blocked"); r.status != http.StatusForbidden || !strings.Contains(r.body, "about:blank") || r.header.Get("Retry-After") != "" {
			t.Errorf("a blocked value: %+v", r)
		}
		s.get("GET /busy")
		if r := s.get("GET /busy"); name == "envoy" && r.status != http.StatusTooManyRequests {
			t.Errorf("a rule's own answer, which Envoy would take for an error: %+v", r)
		} else if name != "envoy" && r.status != http.StatusServiceUnavailable || name != "envoy" && strings.TrimSpace(r.body) != `{"title":"$busy\\"}` {
			t.Errorf("a rule's own answer: %+v", r)
		}
		if r := s.get("GET /forbidden"); r.status != http.StatusForbidden || !strings.Contains(r.body, "not for you") {
			t.Errorf("a 403 of the application: %+v", r)
		}
		served := s.app.served.Load()
		if r := s.post("/search?q=post", "twelve bytes"); r.status != http.StatusOK || r.body != "POST /search?q=post twelve bytes" {
			t.Errorf("a POST that passes: %+v", r)
		}
		if r := s.post("/search?q=post", "twelve bytes"); r.status != http.StatusTooManyRequests {
			t.Errorf("a POST that is refused: %+v", r)
		}
		if got := s.app.served.Load() - served; got != 1 {
			t.Errorf("the application has served %d POSTs, want 1", got)
		}
		// A client's headers about its connection to the gateway do not affect the one between
		// gateway and door.
		for i, header := range [][]string{{"Connection: Upgrade", "Upgrade: websocket"}, {"TE: trailers"}, {"Expect: 100-continue", "Content-Length: 0"}} {
			if r := s.get(fmt.Sprintf("GET /search?q=connection%d", i), header...); r.status != http.StatusOK && r.status != http.StatusContinue && (name != "envoy" || i > 0) { // Envoy has no upgrades by default
				t.Errorf("%q: %+v", header, r)
			}
		}
		// A connection for each request would cost more than the request to the door.
		for n := range 50 {
			s.get(fmt.Sprintf("GET /search?q=%d", n))
		}
		if got := s.connections.accepted.Load(); got > 5 {
			t.Errorf("%d connections for some 60 requests in turn", got)
		}
		s.testSpoofedHeaders()
		if got := s.Figures(); got.Faults[gateway.Ambiguous] != 0 || got.Faults[gateway.Incomplete] != 0 {
			t.Errorf("%d requests had a client's headers beside those of the gateway, %d lacked one", got.Faults[gateway.Ambiguous], got.Faults[gateway.Incomplete])
		}
	})
}

func (s *setup) post(target, body string) reply {
	s.t.Helper()
	response, err := http.Post("http://"+s.gateway.Addr+target, "text/plain", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	got, _ := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(got)}
}

// testSpoofedHeaders checks that no header of a client changes the decision.
func (s *setup) testSpoofedHeaders() {
	spoofed := []string{
		"X-Forwarded-Method: POST", "X-Forwarded-Uri: /nothing", "X-Forwarded-For: 198.51.100.1", "X-Forwarded-Host: other",
		"X-Original-Method: POST", "X-Original-URI: /nothing", "X-Original-Uri: /nothing", "X-Real-IP: 198.51.100.1",
		"X-Hotparam: within", "X-Hotparam-Status: 200", "X-Hotparam-Body: x", "X-Envoy-Original-Path: /nothing",
		"Forwarded: for=198.51.100.1", "X-Http-Method-Override: POST", "X-Rewrite-Url: /nothing", "X-Original-Url: /nothing",
	}
	for _, target := range []string{"/search?q=spoofed", "/a"} {
		if r := s.get("GET " + target); r.status != http.StatusOK {
			s.t.Errorf("%s: %+v", target, r)
		}
		for _, header := range [][]string{spoofed, append(spoofed, spoofed...)} {
			if r := s.get("GET "+target, header...); r.status != http.StatusTooManyRequests {
				s.t.Errorf("%s, spoofed: %+v", target, r)
			}
		}
		for i, header := range spoofed {
			if r := s.get("GET "+target, header, fmt.Sprintf("X-Other: %d", i)); r.status != http.StatusTooManyRequests {
				s.t.Errorf("%s, %s: %+v", target, header, r)
			}
		}
	}
}

// While hotparam is unavailable, hangs or fails, requests pass within the configured time. When
// it is back, it decides again. If the application is unavailable instead, clients get an error:
// a gateway does not treat that as an outage of hotparam.
func TestRealFailOpen(t *testing.T) {
	forEach(t, func(t *testing.T, name string) {
		if realGateways[name].failsClosed {
			t.Skip(name + " lets no request pass then: see its own test")
		}
		d := gatewaytest.Open(t, `
  - {id: q, match: {route: "/search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
`).Decider(t, gateway.Config{})
		s := setUp(t, name, d, false)
		decides := func(when, value string) {
			t.Helper()
			if r := s.get("GET /search?q=" + value); r.status != http.StatusOK {
				t.Errorf("%s: %+v", when, r)
			}
			if r := s.get("GET /search?q=" + value); r.status != http.StatusTooManyRequests {
				t.Errorf("%s, the second request: %+v", when, r)
			}
		}
		passes := func(when string) {
			t.Helper()
			for n := range 10 {
				start := time.Now()
				if r := s.get("GET /search?q=1"); r.status != http.StatusOK || r.body != "GET /search?q=1 " {
					t.Errorf("%s, request %d: %+v", when, n, r)
				}
				// 50 ms are configured. The rest allows for a busy machine.
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("%s, request %d: took %v", when, n, took)
				}
			}
			if r := s.post("/search?q=1", "a body"); r.status != http.StatusOK || r.body != "POST /search?q=1 a body" {
				t.Errorf("%s, a POST: %+v", when, r)
			}
		}
		listen := func() net.Listener { return gatewaytest.Listen(t, s.Addr) }
		decides("at first", "1")
		s.Stop()
		passes("away")

		hanging := listen()
		passes("hanging")
		hanging.Close()

		failing := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "broken", http.StatusInternalServerError)
		})}
		if name != "caddy" { // Caddy passes any answer on to its client
			done := make(chan struct{})
			l := listen()
			go func() { defer close(done); _ = failing.Serve(l) }()
			passes("failing")
			failing.Close()
			<-done
		}

		serveOn(t, listen(), d, gateway.DoorConfig{})
		decides("back", "2")
		s.app.close()
		if r := s.get("GET /search?q=3"); r.status != http.StatusBadGateway && r.status != http.StatusServiceUnavailable {
			t.Errorf("the application is away: %+v, want 502 or 503", r)
		}
	})
}

type countedListener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}
