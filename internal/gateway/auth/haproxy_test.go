package auth

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

// startLua starts HAProxy with the script of deploy/gateways/haproxy/lua in front of an
// application that marks its answers.
func startLua(t testing.TB, auth string) *testenv.HAProxy {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-App", "1") }))
	t.Cleanup(app.Close)
	return testenv.StartHAProxy(t, "gateways/haproxy/lua/haproxy.cfg",
		"APP="+strings.TrimPrefix(app.URL, "http://"), "HOTPARAM_AUTH="+auth, "HOTPARAM_TIMEOUT_MS=5000")
}

// askThrough sends a request as it is and returns what the client gets. Status is 0 if the
// application has answered.
func askThrough(t testing.TB, addr string, r *gatewaytest.Request) gatewaytest.Answer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	text := r.Method + " " + r.Target + " HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n"
	for name, values := range r.Header {
		for _, v := range values {
			text += name + ": " + v + "\r\n"
		}
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.Method})
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	a := gatewaytest.Answer{Status: res.StatusCode, Header: res.Header, Body: string(body)}
	if res.Header.Get("X-App") != "" {
		a.Status, a.Body = 0, ""
	}
	return a
}

// HAProxy's Lua makes the keys, and gives the answers, of the Go middleware.
func TestSameKeysThroughHAProxyLua(t *testing.T) {
	t.Parallel()
	testenv.HAProxyPath(t)
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.Door {
		h := startLua(tb, serve(tb, d, Config{}).addr)
		return gatewaytest.Door{
			NoHeaders: true,
			Without: []string{
				"non-ASCII, raw", "non-ASCII path, raw", "fragment", // HAProxy answers 400
				"broken escape in the path", "OPTIONS of the server", // the application, which is net/http, answers itself
				"address", "IPv6 address", "address that a client claims", // HAProxy sees the test's own
			},
			Ask: func(tb testing.TB, r *gatewaytest.Request) gatewaytest.Answer { return askThrough(tb, h.Addr, r) },
		}
	})
}

// Without hotparam requests pass.
func TestHAProxyLuaFailsOpen(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, Config{})
	h := startLua(t, f.addr)
	request := &gatewaytest.Request{Method: "GET", Target: "/search?q=phone", Header: http.Header{"X-Original-Uri": {"/other"}, "X-Original-Method": {"POST"}}}
	if a := askThrough(t, h.Addr, request); a.Status != 0 {
		t.Fatalf("%+v", a)
	}
	if a := askThrough(t, h.Addr, request); a.Status != 429 || a.Header.Get("Retry-After") == "" || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("over the limit: %+v", a)
	}
	f.stop()
	for range 2 {
		if a := askThrough(t, h.Addr, request); a.Status != 0 {
			t.Errorf("the service is away: %+v", a)
		}
	}
}
