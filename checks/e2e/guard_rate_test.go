package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

const (
	manyPerSecond = 5000
	manyFor       = 2 * time.Second
	crowdMay      = 50 // requests of the crowd that pass
)

// manyRules limit only the crowd's value, to crowdMay: each other value comes a few times.
var manyRules = fmt.Sprintf(`namespace: shop
aggregator: {redis: "redis://127.0.0.1:1"}
rules:
  - {id: search, match: {route: "*"}, by: [q], limit: {rate: 1/1h, burst: %d}}
`, crowdMay)

// paced is the result of calls at a fixed rate.
type paced struct {
	perSecond float64 // calls that ended
	p99       time.Duration
}

// atPace makes calls at a fixed rate, up to 128 at a time, and numbers them from 0. While all 128
// are busy, the calls that fall due are late.
func atPace(perSecond int, lasts time.Duration, call func(i int)) paced {
	var next atomic.Int64
	var running sync.WaitGroup
	var mu sync.Mutex
	var all []time.Duration
	every, begin := time.Second/time.Duration(perSecond), time.Now()
	for range 128 {
		running.Go(func() {
			var took []time.Duration
			for {
				i := next.Add(1) - 1
				due := begin.Add(time.Duration(i) * every)
				if due.Sub(begin) >= lasts || time.Since(begin) > 2*lasts {
					break
				}
				time.Sleep(time.Until(due))
				called := time.Now()
				call(int(i))
				took = append(took, time.Since(called))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	running.Wait()
	return paced{float64(len(all)) / time.Since(begin).Seconds(), quantile(all, 0.99)}
}

// ofMany returns the target of a call and whether it is one of the crowd's, as every tenth is.
func ofMany(i int) (target string, crowd bool) {
	if i%10 == 0 {
		return "/search?q=crowd", true
	}
	return fmt.Sprintf("/search?q=v%d", i%2003), false
}

// manyAnswers counts decisions.
type manyAnswers struct{ passed, crowdPassed, refused, crowdRefused, failed atomic.Int64 }

func (a *manyAnswers) add(i int, passes bool) {
	switch _, crowd := ofMany(i); {
	case crowd && passes:
		a.crowdPassed.Add(1)
	case crowd:
		a.crowdRefused.Add(1)
	case passes:
		a.passed.Add(1)
	default:
		a.refused.Add(1)
	}
}

// checkDecisions fails the test if a decision was wrong or the rate too low. alone is the result without
// decisions, or zero if that was not measured.
func (a *manyAnswers) checkDecisions(t *testing.T, name string, alone, got paced) {
	t.Helper()
	t.Logf("%s: %.0f/s, p99 %v; %d passed; of the crowd %d passed, %d were refused; without decisions %.0f/s, p99 %v",
		name, got.perSecond, got.p99, a.passed.Load(), a.crowdPassed.Load(), a.crowdRefused.Load(), alone.perSecond, alone.p99)
	if a.refused.Load() > 0 || a.failed.Load() > 0 || a.passed.Load() == 0 {
		t.Errorf("%s: %d requests were refused that should pass, and %d failed", name, a.refused.Load(), a.failed.Load())
	}
	if got.perSecond < alone.perSecond/5 {
		t.Errorf("%s: %.0f/s, and %.0f/s without decisions", name, got.perSecond, alone.perSecond)
	}
}

// The test sends 5,000 requests a second, or as many as the machine can do. Every other value
// passes, and exactly as much of the crowd's value as its limit allows. It asks the door for
// Envoy over one connection, the check door in batches, and through HAProxy.
func TestManyRequestsASecond(t *testing.T) {
	bin := quickCommands(t)
	t.Run("rls", func(t *testing.T) {
		g := startGuardOfAll(t, bin.hotparam, manyRules)
		conn, err := dialRLS(g.rls)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var a manyAnswers
		health, limits := healthpb.NewHealthClient(conn), ratelimit.NewRateLimitServiceClient(conn)
		alone := atPace(manyPerSecond, manyFor/2, func(int) {
			if _, err := health.Check(context.Background(), new(healthpb.HealthCheckRequest)); err != nil {
				a.failed.Add(1)
			}
		})
		got := atPace(manyPerSecond, manyFor, func(i int) {
			target, _ := ofMany(i)
			answer, err := limits.ShouldRateLimit(context.Background(), rlsRequest(target))
			if err != nil {
				a.failed.Add(1)
				return
			}
			a.add(i, answer.GetOverallCode() == ratelimit.RateLimitResponse_OK)
		})
		a.checkDecisions(t, "rls", alone, got)
		if n := a.crowdPassed.Load(); n != crowdMay {
			t.Errorf("%d of the crowd passed, want %d", n, crowdMay)
		}
	})
	t.Run("check", func(t *testing.T) {
		const batch = 100
		g := startGuardOfAll(t, bin.hotparam, manyRules)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: patience}
		defer client.CloseIdleConnections()
		var a manyAnswers
		got := atPace(manyPerSecond/batch, manyFor, func(n int) {
			var in struct {
				Checks []map[string]string `json:"checks"`
			}
			for i := range batch {
				target, _ := ofMany(n*batch + i)
				in.Checks = append(in.Checks, map[string]string{"method": "GET", "uri": target})
			}
			body, _ := json.Marshal(in)
			response, err := client.Post("http://"+g.check+"/v1/check/batch", "application/json", bytes.NewReader(body))
			if err != nil {
				a.failed.Add(1)
				return
			}
			defer response.Body.Close()
			var out struct{ Results []struct{ Allowed bool } }
			if err := json.NewDecoder(response.Body).Decode(&out); err != nil || len(out.Results) != batch {
				a.failed.Add(1)
				return
			}
			for i, r := range out.Results {
				a.add(n*batch+i, r.Allowed)
			}
		})
		got.perSecond *= batch
		a.checkDecisions(t, "check", paced{}, got)
		if n := a.crowdPassed.Load(); n != crowdMay {
			t.Errorf("%d of the crowd passed, want %d", n, crowdMay)
		}
	})
	t.Run("haproxy", func(t *testing.T) {
		app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(app.Close)
		g := startGuardOfAll(t, bin.hotparam, manyRules)
		haproxy := real.StartHAProxy(t, "gateways/haproxy/spoe/haproxy.cfg", "APP="+strings.TrimPrefix(app.URL, "http://"), "HOTPARAM_SPOE="+g.spoe)
		away := real.StartHAProxy(t, "gateways/haproxy/spoe/haproxy.cfg", "APP="+strings.TrimPrefix(app.URL, "http://"),
			fmt.Sprintf("HOTPARAM_SPOE=127.0.0.1:%d", testenv.FreePort(t)))
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true}, Timeout: patience}
		t.Cleanup(client.CloseIdleConnections)
		within(t, patience, "HAProxy asks the guard", func() bool {
			return ask(client, "http://"+haproxy.Addr+"/ready").err == nil && g.count(`hotparam_guard_checks_total{decision="passed",door="spoe"}`) > 0
		})
		time.Sleep(1500 * time.Millisecond) // by then the other HAProxy knows that there is no guard
		var a manyAnswers
		through := func(addr string, answers *manyAnswers) func(int) {
			return func(i int) {
				target, _ := ofMany(i)
				got := ask(client, "http://"+addr+target)
				if got.status != http.StatusOK && !got.refused() {
					a.failed.Add(1)
					return
				}
				if answers != nil {
					answers.add(i, !got.refused())
				}
			}
		}
		alone := atPace(manyPerSecond, manyFor/2, through(away.Addr, nil))
		got := atPace(manyPerSecond, manyFor, through(haproxy.Addr, &a))
		a.checkDecisions(t, "haproxy", alone, got)
		// If the machine is too busy to answer within 50 ms, some more pass.
		if n, r := a.crowdPassed.Load(), a.crowdRefused.Load(); n < crowdMay || r < n {
			t.Errorf("%d of the crowd passed, and %d were refused", n, r)
		}
	})
}
