package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// gatewayKinds start gateways by deploy/gateways, between an application and a guard, and
// return their addresses.
var gatewayKinds = map[string]func(t *testing.T, app string, doors guardDoors) string{
	"nginx": func(t *testing.T, app string, doors guardDoors) string {
		return real.Nginx(t, "nginx", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": doors.auth, "50ms": "20s"}).Addr
	},
	"njs": func(t *testing.T, app string, doors guardDoors) string {
		return real.NginxNJS(t, "nginx-njs", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": doors.auth, "50ms": "20s"}).Addr
	},
	"caddy": func(t *testing.T, app string, doors guardDoors) string {
		return real.Caddy(t, "caddy", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": doors.auth, "50ms": "20s"}).Addr
	},
	"traefik": func(t *testing.T, app string, doors guardDoors) string {
		return real.Traefik(t, "traefik", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": doors.auth}).Addr
	},
	"envoy": func(t *testing.T, app string, doors guardDoors) string {
		return real.Envoy(t, "envoy-extauthz", map[string]string{
			real.EnvoyAddress("127.0.0.1:8080"): real.EnvoyAddress(app),
			real.EnvoyAddress("127.0.0.1:9132"): real.EnvoyAddress(doors.auth),
			"0.02s":                             "20s",
		}).Addr
	},
	"haproxy": func(t *testing.T, app string, doors guardDoors) string {
		return real.StartHAProxy(t, "gateways/haproxy/spoe/haproxy.cfg", "APP="+app, "HOTPARAM_SPOE="+doors.spoe, "HOTPARAM_TIMEOUT=20s").Addr
	},
}

// A crowd comes for one of 2,000 values through two gateways of each kind, each beside a guard
// of its own. Neither guard alone sees enough of it: the aggregator finds the value hot. From
// then on both guards together let through exactly its limit, and no other value is touched.
func TestCrowdBehindGateways(t *testing.T) {
	t.Parallel()
	doors := startGuards(t, 2)
	for name, start := range gatewayKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := &countingApp{of: "crowd"}
			server := httptest.NewServer(app)
			t.Cleanup(server.Close)
			crowd := crowdBehind{t: t, path: name, app: app}
			for _, d := range doors {
				crowd.gateways = append(crowd.gateways, start(t, server.Listener.Addr().String(), d))
			}
			transport := &http.Transport{}
			crowd.client = http.Client{Transport: transport, Timeout: time.Minute}
			t.Cleanup(transport.CloseIdleConnections)
			crowd.run()
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

func (c *crowdBehind) run() {
	t := c.t
	c.others(0, 1000)
	for n := range 120 { // 60 through each, of the 100 that make a value hot
		c.get(n, "crowd")
	}
	begin := time.Now()
	for n := range c.gateways {
		for c.get(n, "crowd") != http.StatusTooManyRequests {
			if time.Sleep(10 * time.Millisecond); time.Since(begin) > 20*time.Second {
				t.Fatalf("gateway %d: the value is not limited within 20 s", n)
			}
		}
	}
	served := c.app.times()
	if len(served) < 100 {
		t.Fatalf("%d of the crowd were served, want the 100 that make a value hot", len(served))
	}
	t.Logf("limited %v after the 100th request, at both %v after the last; %d passed", c.refused.Sub(served[99]), time.Since(begin), c.passed)
	for n := range 40 {
		if status := c.get(n, "crowd"); status != http.StatusTooManyRequests {
			t.Errorf("the hot value at gateway %d: %d", n%2, status)
		}
	}
	c.others(1000, 2000)
	if got := len(c.app.times()); got != c.passed {
		t.Errorf("the application served %d requests of the crowd, and %d have passed", got, c.passed)
	}
}

// others asks for values that are none of the crowd's.
func (c *crowdBehind) others(from, to int) {
	c.t.Helper()
	for n := from; n < to; n++ {
		if status := c.get(n, fmt.Sprint("v", n)); status != http.StatusOK {
			c.t.Fatalf("value %d: %d", n, status)
		}
	}
}

// get asks the gateways in turn, and returns the status.
func (c *crowdBehind) get(n int, value string) int {
	c.t.Helper()
	response, err := c.client.Get(fmt.Sprintf("http://%s/%s?q=%s", c.gateways[n%2], c.path, value))
	if err != nil {
		c.t.Fatal(err)
	}
	response.Body.Close()
	switch {
	case value != c.app.of:
	case response.StatusCode == http.StatusOK:
		c.passed++
	case c.refused.IsZero():
		c.refused = time.Now()
	}
	return response.StatusCode
}

// guardDoors are the addresses of one guard's doors.
type guardDoors struct{ auth, spoe string }

// startGuards starts an aggregator and guards with rules for each kind of gateway, and returns
// the addresses of their doors.
func startGuards(t *testing.T, n int) (doors []guardDoors) {
	t.Helper()
	binary, redis, dir := commands(t).hotparam, testenv.Redis(t), t.TempDir()
	text := fmt.Sprintf(`
namespace: shop
aggregator: {redis: %q, listen: "127.0.0.1:%d", http: "127.0.0.1:%d"}
statsd: {addresses: ["127.0.0.1:%[2]d"]}
rules:
`, redis.URL(), testenv.FreePort(t), testenv.FreePort(t))
	for name := range gatewayKinds {
		text += fmt.Sprintf("  - {id: %[1]s, match: {route: \"GET /%[1]s\"}, by: [q], hot: 100/1m, limit: {rate: 1/1h, burst: 5, scope: exact, when_redis_is_away: closed}}\n", name)
	}
	start := func(command, name, guard, ready string) {
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(text+guard), 0o600); err != nil {
			t.Fatal(err)
		}
		testenv.Start(t, exec.Command(binary, command, "--config", path)).WaitFor(ready)
	}
	start("aggregator", "aggregator", "", "aggregator is up")
	for i := range n {
		d := guardDoors{auth: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), spoe: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))}
		guard := fmt.Sprintf("guard: {http: \"127.0.0.1:%d\", auth: [{listen: %q}], spoe: {listen: %q}}\n", testenv.FreePort(t), d.auth, d.spoe)
		start("guard", fmt.Sprint("guard", i), guard, "guard is up")
		doors = append(doors, d)
	}
	return doors
}
