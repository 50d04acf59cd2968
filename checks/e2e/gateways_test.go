package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// gatewayKind is a kind of gateway by deploy/gateways, and the door that it asks.
type gatewayKind struct {
	name, door string
	timeout    time.Duration // configured time after which a request passes
	// start starts a gateway between an application and a door, with another timeout.
	start func(tb testing.TB, app, door string, timeout time.Duration) (addr string)
}

var gatewayKinds = []gatewayKind{
	{"envoy", "rls", 20 * time.Millisecond, func(tb testing.TB, app, door string, timeout time.Duration) string {
		return real.Envoy(tb, "envoy", envoyEdits(app, "127.0.0.1:9131", door, timeout)).Addr
	}},
	{"extauthz", "auth", 20 * time.Millisecond, func(tb testing.TB, app, door string, timeout time.Duration) string {
		return real.Envoy(tb, "envoy-extauthz", envoyEdits(app, "127.0.0.1:9132", door, timeout)).Addr
	}},
	{"nginx", "auth", 50 * time.Millisecond, func(tb testing.TB, app, door string, timeout time.Duration) string {
		return real.Nginx(tb, "nginx", edits(app, door, timeout)).Addr
	}},
	{"njs", "auth", 50 * time.Millisecond, func(tb testing.TB, app, door string, timeout time.Duration) string {
		return real.NginxNJS(tb, "nginx-njs", edits(app, door, timeout)).Addr
	}},
	{"caddy", "auth", 50 * time.Millisecond, func(tb testing.TB, app, door string, timeout time.Duration) string {
		return real.Caddy(tb, "caddy", edits(app, door, timeout)).Addr
	}},
	{"haproxy", "spoe", 50 * time.Millisecond, func(tb testing.TB, app, door string, timeout time.Duration) string {
		return real.StartHAProxy(tb, "gateways/haproxy/spoe/haproxy.cfg", "APP="+app, "HOTPARAM_SPOE="+door, "HOTPARAM_TIMEOUT="+timeout.String()).Addr
	}},
}

// edits returns the replacements that a test makes in a file of deploy/gateways.
func edits(app, door string, timeout time.Duration) map[string]string {
	return map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": door, "50ms": timeout.String()}
}

func envoyEdits(app, doorThere, door string, timeout time.Duration) map[string]string {
	return map[string]string{
		real.EnvoyAddress("127.0.0.1:8080"): real.EnvoyAddress(app),
		real.EnvoyAddress(doorThere):        real.EnvoyAddress(door),
		"timeout: 0.02s":                    fmt.Sprintf("timeout: %gs", timeout.Seconds()),
	}
}

// traefik has no timeout of its own.
var traefik = gatewayKind{"traefik", "auth", 0, func(tb testing.TB, app, door string, _ time.Duration) string {
	return real.Traefik(tb, "traefik", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": door}).Addr
}}

// A crowd requests one of 2,000 values through two gateways of each kind, each with a guard of
// its own. Neither guard alone sees enough of it: the aggregator finds the value hot. From then
// on both guards together let through exactly its limit, and no other value is affected.
func TestCrowdBehindGateways(t *testing.T) {
	t.Parallel()
	kinds := append(slices.Clone(gatewayKinds), traefik)
	guards := startGuards(t, kinds)
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			app := &countingApp{value: "crowd"}
			server := httptest.NewServer(app)
			t.Cleanup(server.Close)
			crowd := crowdBehind{t: t, path: kind.name, app: app}
			for _, doors := range guards {
				crowd.gateways = append(crowd.gateways, kind.start(t, server.Listener.Addr().String(), doors[kind.door], 20*time.Second))
			}
			transport := &http.Transport{}
			crowd.client = http.Client{Transport: transport, Timeout: time.Minute}
			t.Cleanup(transport.CloseIdleConnections)
			crowd.checkCrowd()
		})
	}
}

// crowdBehind is a crowd behind gateways of one kind.
type crowdBehind struct {
	t        *testing.T
	path     string
	app      *countingApp
	gateways []string
	client   http.Client
	passed   int       // requests of the crowd
	refused  time.Time // the first of them that was
}

func (c *crowdBehind) checkCrowd() {
	t := c.t
	c.others(0, 1000)
	for n := range 120 { // 60 through each, of the 100 that make a value hot
		c.askGateway(n, "crowd")
	}
	begin := time.Now()
	for n := range c.gateways {
		for c.askGateway(n, "crowd") != http.StatusTooManyRequests {
			if time.Sleep(10 * time.Millisecond); time.Since(begin) > 20*time.Second {
				t.Fatalf("gateway %d: the value is not limited within 20 s", n)
			}
		}
	}
	served := c.app.times()
	if len(served) < 100 {
		t.Fatalf("%d of the crowd were served, want the 100 that make a value hot", len(served))
	}
	took := c.refused.Sub(served[99])
	if t.Logf("limited %v after the 100th request, at both %v after the last; %d passed", took, time.Since(begin), c.passed); took > time.Second {
		t.Errorf("limited %v after the 100th request, want at most 1s", took)
	}
	for n := range 40 {
		if status := c.askGateway(n, "crowd"); status != http.StatusTooManyRequests {
			t.Errorf("the hot value at gateway %d: %d", n%2, status)
		}
	}
	c.others(1000, 2000)
	if got := len(c.app.times()); got != c.passed {
		t.Errorf("the application served %d requests of the crowd, and %d have passed", got, c.passed)
	}
}

// others sends requests for values other than the crowd's.
func (c *crowdBehind) others(from, to int) {
	c.t.Helper()
	for n := from; n < to; n++ {
		if status := c.askGateway(n, fmt.Sprint("v", n)); status != http.StatusOK {
			c.t.Fatalf("value %d: %d", n, status)
		}
	}
}

// askGateway sends a request through the gateways alternately and returns the status.
func (c *crowdBehind) askGateway(n int, value string) int {
	c.t.Helper()
	response, err := c.client.Get(fmt.Sprintf("http://%s/%s?q=%s", c.gateways[n%2], c.path, value))
	if err != nil {
		c.t.Fatal(err)
	}
	response.Body.Close()
	switch {
	case value != c.app.value:
	case response.StatusCode == http.StatusOK:
		c.passed++
	case c.refused.IsZero():
		c.refused = time.Now()
	}
	return response.StatusCode
}

// startGuards starts an aggregator and two guards with rules for each kind of gateway. It returns the
// addresses of each guard's doors.
func startGuards(t *testing.T, kinds []gatewayKind) (doors []map[string]string) {
	t.Helper()
	rules := ""
	for _, kind := range kinds {
		rules += fmt.Sprintf(`
  - id: %[1]s
    match: {route: "GET /%[1]s"}
    by: [q]
    hot: 100/1m
    limit: {rate: 1/1h, burst: 5, scope: exact, when_redis_is_away: closed}`, kind.name)
	}
	f := newFleet(t, commands(t), rules)
	f.startAggregator()
	const free = "127.0.0.1:0"
	for range 2 {
		p := f.startProgram(f.bin.hotparam, "guard", "--config", f.file(f.sections()), "--rls", free, "--auth", free, "--check", free, "--spoe", free, "--http", free)
		at := make(map[string]string)
		for field := range strings.FieldsSeq(p.WaitFor(".*guard is up.*")[0]) {
			name, addr, _ := strings.Cut(field, "=")
			at[name] = addr
		}
		doors = append(doors, at)
	}
	return doors
}

// countingApp is an application that records when it served one value.
type countingApp struct {
	value string

	mu     sync.Mutex
	served []time.Time
}

// ServeHTTP implements [http.Handler].
func (a *countingApp) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("q") == a.value {
		a.mu.Lock()
		a.served = append(a.served, time.Now())
		a.mu.Unlock()
	}
}

func (a *countingApp) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.served
}
