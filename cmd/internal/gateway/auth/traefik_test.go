//go:build real

package auth

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

const traefikRules = `
  - {id: q, match: {route: "/search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
`

// Traefik's middleware lets no request pass while hotparam is unavailable, as its page says
// first. It asks again as soon as hotparam is back.
func TestTraefikFailsClosed(t *testing.T) {
	t.Parallel()
	d := gatewaytest.Open(t, traefikRules).Decider(t, gateway.Config{})
	s := setUp(t, "traefik", d, false)
	s.expect("at first", "/search?q=1", http.StatusOK, http.StatusTooManyRequests)
	s.Stop()
	s.expect("away", "/search?q=1", http.StatusInternalServerError, http.StatusInternalServerError)
	s.expect("away, another value", "/search?q=2", http.StatusInternalServerError)
	serveOn(t, gatewaytest.Listen(t, s.Addr), d, gateway.DoorConfig{})
	s.expect("back", "/search?q=3", http.StatusOK, http.StatusTooManyRequests)
	s.app.close()
	s.expect("the application is away", "/search?q=4", http.StatusBadGateway)
}

// With failover.yaml requests pass while hotparam is unavailable or hangs, except for the first
// second, and are decided on again when it is back. Answers of the application do not count as
// signs of an outage.
func TestTraefikFailover(t *testing.T) {
	t.Parallel()
	d := gatewaytest.Open(t, traefikRules).Decider(t, gateway.Config{})
	health := gatewaytest.Listen(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(health.Addr().String())
	s := &setup{app: startApplication(t), fixture: serve(t, d, gateway.DoorConfig{})}
	stopHealth := serveHealth(t, health)
	s.gateway = real.Traefik(t, "traefik", map[string]string{
		application0: s.app.addr, door0: s.Addr, "port: 9126": "port: " + port, "filename: dynamic.yaml": "filename: failover.yaml",
	})
	s.await("/search?q=1", http.StatusTooManyRequests)
	s.expect("a 500 of the application", "/broken", http.StatusInternalServerError, http.StatusInternalServerError)
	s.expect("after it", "/search?q=1", http.StatusTooManyRequests)

	s.Stop()
	stopHealth()
	s.await("/search?q=1", http.StatusOK)
	s.expect("away", "/search?q=1", http.StatusOK, http.StatusOK, http.StatusOK)

	hanging := gatewaytest.Listen(t, health.Addr().String())
	time.Sleep(2 * time.Second) // two of Traefik's checks
	s.expect("hanging", "/search?q=1", http.StatusOK)
	hanging.Close()

	serveOn(t, gatewaytest.Listen(t, s.Addr), d, gateway.DoorConfig{})
	serveHealth(t, gatewaytest.Listen(t, health.Addr().String()))
	s.await("/search?q=1", http.StatusTooManyRequests)
}

// serveHealth answers as the guard's health page does.
func serveHealth(t *testing.T, l net.Listener) (stop func()) {
	t.Helper()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/-/ready" {
			http.NotFound(w, r)
		}
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	stop = func() { server.Close(); <-done }
	t.Cleanup(stop)
	return stop
}

// expect sends requests for a target and checks their statuses.
func (s *setup) expect(when, target string, statuses ...int) {
	s.t.Helper()
	for n, want := range statuses {
		if r := s.get("GET " + target); r.status != want {
			s.t.Errorf("%s, %s, request %d: %+v, want %d", when, target, n+1, r, want)
		}
	}
}

// await sends requests for a target until one gets the status.
func (s *setup) await(target string, status int) {
	s.t.Helper()
	begin := time.Now()
	for {
		r := s.get("GET " + target)
		if r.status == status {
			break
		}
		if time.Since(begin) > 20*time.Second {
			s.t.Fatalf("%s: %+v after 20 s, want %d", target, r, status)
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Logf("%s: %d after %v", target, status, time.Since(begin).Round(time.Millisecond))
}
