package auth

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A crowd comes for one of many values through two gateways of each kind, each beside a guard
// of its own. Neither guard alone sees enough of it: the aggregator finds the value hot. From
// then on both guards limit it, and no other value.
func TestRealCrowd(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 2)
	app := startApplication(t)
	for _, name := range []string{"nginx", "caddy", "envoy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gateways []*setup
			for _, door := range f.doors {
				values := map[string]string{application0: app.addr, door0: door, realGateways[name].timeout: "20s"}
				gateways = append(gateways, &setup{app: app, fixture: &fixture{t: t}, gateway: realGateways[name].start(t, values)})
			}
			get := func(n int, value string) int { return gateways[n%2].get("GET /" + name + "?q=" + value).status }
			for n := range 300 { // each value once or twice: nobody minds
				if status := get(n, fmt.Sprint("v", n%200)); status != http.StatusOK {
					t.Fatalf("value %d: %d", n, status)
				}
			}
			// 60 through each, of the 100 that make a value hot.
			for n := range 120 {
				get(n, "hot")
			}
			start := time.Now()
			for n := range gateways {
				for get(n, "hot") != http.StatusTooManyRequests {
					if time.Sleep(10 * time.Millisecond); time.Since(start) > 20*time.Second {
						t.Fatalf("gateway %d: the value is not limited within 20 s", n)
					}
				}
			}
			t.Logf("limited at both after %v", time.Since(start))
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

// fleet is an aggregator with guards.
type fleet struct {
	doors []string // of the guards, for gateways that ask over HTTP
}

// startFleet starts them as users do, by the command and a file.
func startFleet(t *testing.T, guards int) *fleet {
	t.Helper()
	redis, binary, dir := testenv.Redis(t), testenv.Binary(t), t.TempDir()
	counts := testenv.FreePort(t)
	text := fmt.Sprintf(`
namespace: shop
aggregator: {redis: %q, listen: "127.0.0.1:%d", http: "127.0.0.1:%d"}
statsd: {addresses: ["127.0.0.1:%[2]d"]}
rules:
`, redis.URL(), counts, testenv.FreePort(t))
	for name := range realGateways {
		text += fmt.Sprintf("  - {id: %[1]s, match: {route: \"GET /%[1]s\"}, by: [q], hot: 100/1m, limit: {rate: 1/1h, burst: 1}}\n", name)
	}
	start := func(command, guard, ready string) {
		path := filepath.Join(dir, fmt.Sprintf("%s%d.yaml", command, testenv.FreePort(t)))
		if err := os.WriteFile(path, []byte(text+guard), 0o600); err != nil {
			t.Fatal(err)
		}
		testenv.Start(t, exec.Command(binary, command, "--config", path)).WaitFor(ready)
	}
	start("aggregator", "", "is up")
	f := new(fleet)
	for range guards {
		door := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
		start("guard", fmt.Sprintf("guard: {http: \"127.0.0.1:%d\", auth: [{listen: %q}]}\n", testenv.FreePort(t), door), "guard is up")
		f.doors = append(f.doors, door)
	}
	return f
}
