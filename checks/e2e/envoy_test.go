package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// A crowd on one of 2,000 values, behind two Envoys with a guard each and an application that
// knows nothing of hotparam: the value is limited for both together, exactly as it is counted at
// the application, and the others are not touched.
func TestACrowdBehindTwoEnvoys(t *testing.T) {
	t.Parallel()
	const perSecond, burst, workers = 50, 50, 8
	f := newFleet(t, commands(t), fmt.Sprintf(`
  - id: search
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, hold: 1m}
    limit: {rate: %d/s, burst: %d, scope: exact, when_redis_is_away: closed}
`, perSecond, burst))
	f.startAggregator()
	app := &countingApp{of: "crowd"}
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	var urls []string
	for range 2 {
		guard := f.start(f.bin.hotparam, "guard", "--config", f.config(f.statsd, f.redis.Addr()), "--rls", "127.0.0.1:0", "--http", "127.0.0.1:0")
		door := guard.WaitFor(`guard is up.* rls=(\S+)`)[1]
		envoy := real.Envoy(t, "envoy", map[string]string{
			"timeout: 0.02s":                    "timeout: 2s", // a busy machine takes its time
			real.EnvoyAddress("127.0.0.1:8080"): real.EnvoyAddress(strings.TrimPrefix(server.URL, "http://")),
			real.EnvoyAddress("127.0.0.1:9131"): real.EnvoyAddress(door),
		})
		urls = append(urls, "http://"+envoy.Addr)
	}
	for _, url := range urls {
		f.eventually(t, url)
	}

	var running sync.WaitGroup
	var mu sync.Mutex // guards the rest
	var refused []time.Time
	var inForce time.Time       // since when the limit is stated: its first requests pass
	others := make(map[int]int) // by status
	over := time.Now().Add(4 * time.Second)
	for w := range workers {
		running.Go(func() {
			for i := 0; time.Now().Before(over); i++ {
				response, err := f.http.Get(urls[(w+i)%2] + "/search?q=crowd")
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				now := time.Now()
				mu.Lock()
				if response.StatusCode == http.StatusTooManyRequests {
					refused = append(refused, now)
				}
				if inForce.IsZero() && response.Header.Get("RateLimit") != "" {
					inForce = now
				}
				mu.Unlock()
				time.Sleep(8 * time.Millisecond)
			}
		})
	}
	running.Go(func() {
		for i := 0; time.Now().Before(over); i++ {
			status, _ := f.get(fmt.Sprintf("%s/search?q=v%d", urls[i%2], i%2000))
			mu.Lock()
			others[status]++
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
	})
	running.Wait()

	served := app.times()
	if len(refused) == 0 || len(served) < 100 {
		t.Fatalf("%d of the crowd were served, and %d refused", len(served), len(refused))
	}
	first, last := refused[0], refused[len(refused)-1]
	within := 0
	for _, at := range served {
		if at.After(first) && at.Before(last) {
			within++
		}
	}
	took := last.Sub(first).Seconds()
	most := burst + int(perSecond*took) + workers // on their way when the first was refused
	t.Logf("the limit is in force %v after the 100th request, and refuses after %v; then %d of the crowd were served in %.2f s (at most %d); others: %v",
		inForce.Sub(served[99]).Round(time.Millisecond), first.Sub(served[99]).Round(time.Millisecond), within, took, most, others)
	if inForce.IsZero() || inForce.Sub(served[99]) > time.Second {
		t.Errorf("the limit is in force %v after the 100th request", inForce.Sub(served[99]))
	}
	if within > most || within < int(perSecond*took)/2 {
		t.Errorf("%d of the crowd were served in %.2f s, want at most %d", within, took, most)
	}
	if len(others) != 1 || others[http.StatusOK] == 0 {
		t.Errorf("others got %v, want 200 alone", others)
	}
}

// eventually waits until requests come through a gateway.
func (f *fleet) eventually(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if status, _ := f.get(url + "/ready"); status == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s does not answer", url)
}

// countingApp is an application that remembers when it served one value.
type countingApp struct {
	of string

	mu     sync.Mutex
	served []time.Time
}

// ServeHTTP implements [http.Handler].
func (a *countingApp) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("q") == a.of {
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
