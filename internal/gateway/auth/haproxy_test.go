package auth

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

// startLua starts HAProxy with the script of deploy/gateways/haproxy/lua in front of an
// application that marks its answers.
func startLua(t testing.TB, program testenv.HAProxyProgram, auth string) *testenv.HAProxy {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-App", "1") }))
	t.Cleanup(app.Close)
	return program.Start(t, "gateways/haproxy/lua/haproxy.cfg",
		"APP="+strings.TrimPrefix(app.URL, "http://"), "HOTPARAM_AUTH="+auth, "HOTPARAM_TIMEOUT_MS=5000")
}

// HAProxy's Lua makes the keys, and gives the answers, of the Go middleware.
func TestSameKeysThroughHAProxyLua(t *testing.T) {
	t.Parallel()
	testenv.EachHAProxy(t, testSameKeysThroughHAProxyLua)
}

func testSameKeysThroughHAProxyLua(t *testing.T, program testenv.HAProxyProgram) {
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.Door {
		h := startLua(tb, program, serve(tb, d, Config{}).Addr)
		return gatewaytest.Door{
			NoHeaders: true,
			Without: []string{
				"non-ASCII, raw", "non-ASCII path, raw", "fragment", // HAProxy answers 400
				"broken escape in the path", "OPTIONS of the server", // the application, which is net/http, answers itself
				"address", "IPv6 address", "address that a client claims", // HAProxy sees the test's own
			},
			Ask: func(tb testing.TB, r *gatewaytest.Request) gatewaytest.Answer {
				return gatewaytest.AskThrough(tb, h.Addr, r)
			},
		}
	})
}

// Without hotparam requests pass.
func TestHAProxyLuaFailsOpen(t *testing.T) {
	t.Parallel()
	testenv.EachHAProxy(t, testHAProxyLuaFailsOpen)
}

func testHAProxyLuaFailsOpen(t *testing.T, program testenv.HAProxyProgram) {
	f := open(t, oneEach, Config{})
	h := startLua(t, program, f.Addr)
	request := &gatewaytest.Request{Method: "GET", Target: "/search?q=phone", Header: http.Header{"X-Original-Uri": {"/other"}, "X-Original-Method": {"POST"}}}
	if a := gatewaytest.AskThrough(t, h.Addr, request); a.Status != 0 {
		t.Fatalf("%+v", a)
	}
	if a := gatewaytest.AskThrough(t, h.Addr, request); a.Status != 429 || a.Header.Get("Retry-After") == "" || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("over the limit: %+v", a)
	}
	f.Stop()
	for range 2 {
		if a := gatewaytest.AskThrough(t, h.Addr, request); a.Status != 0 {
			t.Errorf("the service is away: %+v", a)
		}
	}
}
