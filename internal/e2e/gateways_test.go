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

	"github.com/hotparam/hotparam/internal/testenv"
)

// gatewayKinds start gateways by deploy/gateways, between an application and a guard.
var gatewayKinds = map[string]func(tb testing.TB, app, door string) *testenv.Gateway{
	"nginx": func(tb testing.TB, app, door string) *testenv.Gateway {
		return testenv.Nginx(tb, "nginx", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": door, "50ms": "20s"})
	},
	"caddy": func(tb testing.TB, app, door string) *testenv.Gateway {
		return testenv.Caddy(tb, "caddy", map[string]string{"127.0.0.1:8080": app, "127.0.0.1:9132": door, "50ms": "20s"})
	},
	"envoy": func(tb testing.TB, app, door string) *testenv.Gateway {
		return testenv.Envoy(tb, "envoy-extauthz", map[string]string{
			testenv.EnvoyAddress("127.0.0.1:8080"): testenv.EnvoyAddress(app),
			testenv.EnvoyAddress("127.0.0.1:9132"): testenv.EnvoyAddress(door),
			"0.02s":                                "20s",
		})
	},
}

// A crowd comes for one of many values through two gateways of each kind, each beside a guard
// of its own. Neither guard alone sees enough of it: the aggregator finds the value hot. From
// then on both guards limit it, and no other value.
func TestCrowdBehindGateways(t *testing.T) {
	t.Parallel()
	doors := startGuards(t, 2)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	for name, start := range gatewayKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gateways []*testenv.Gateway
			for _, door := range doors {
				gateways = append(gateways, start(t, app.Listener.Addr().String(), door))
			}
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			t.Cleanup(client.CloseIdleConnections)
			get := func(n int, value string) int {
				response, err := client.Get(fmt.Sprintf("http://%s/%s?q=%s", gateways[n%2].Addr, name, value))
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				return response.StatusCode
			}
			for n := range 300 {
				if status := get(n, fmt.Sprint("v", n%200)); status != http.StatusOK {
					t.Fatalf("value %d: %d", n, status)
				}
			}
			for n := range 120 { // 60 through each, of the 100 that make a value hot
				get(n, "hot")
			}
			begin := time.Now()
			for n := range gateways {
				for get(n, "hot") != http.StatusTooManyRequests {
					if time.Sleep(10 * time.Millisecond); time.Since(begin) > 20*time.Second {
						t.Fatalf("gateway %d: the value is not limited within 20 s", n)
					}
				}
			}
			t.Logf("limited at both %v after the last of the crowd", time.Since(begin))
			for n := range 40 {
				if status := get(n, "hot"); status != http.StatusTooManyRequests {
					t.Errorf("the hot value at gateway %d: %d", n%2, status)
				}
			}
			for n := range 400 {
				if status := get(n, fmt.Sprint("v", n%200)); status != http.StatusOK {
					t.Errorf("value %d: %d", n, status)
				}
			}
		})
	}
}

// startGuards starts an aggregator and guards with rules for each kind of gateway, and returns
// the addresses of their doors.
func startGuards(t *testing.T, n int) (doors []string) {
	t.Helper()
	binary, redis, dir := commands(t).hotparam, testenv.Redis(t), t.TempDir()
	text := fmt.Sprintf(`
namespace: shop
aggregator: {redis: %q, listen: "127.0.0.1:%d", http: "127.0.0.1:%d"}
statsd: {addresses: ["127.0.0.1:%[2]d"]}
rules:
`, redis.URL(), testenv.FreePort(t), testenv.FreePort(t))
	for name := range gatewayKinds {
		text += fmt.Sprintf("  - {id: %[1]s, match: {route: \"GET /%[1]s\"}, by: [q], hot: 100/1m, limit: {rate: 1/1h, burst: 1}}\n", name)
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
		door := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
		guard := fmt.Sprintf("guard: {http: \"127.0.0.1:%d\", auth: [{listen: %q}]}\n", testenv.FreePort(t), door)
		start("guard", fmt.Sprint("guard", i), guard, "guard is up")
		doors = append(doors, door)
	}
	return doors
}
