//go:build real

package auth

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// startLua starts HAProxy with the script of deploy/gateways/haproxy/lua in front of an
// application that marks its answers.
func startLua(t testing.TB, auth string) *real.Gateway {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-App", "1") }))
	t.Cleanup(app.Close)
	return real.HAProxy28(t).Start(t, "gateways/haproxy/lua/haproxy.cfg",
		"APP="+strings.TrimPrefix(app.URL, "http://"), "HOTPARAM_AUTH="+auth, "HOTPARAM_TIMEOUT_MS=5000")
}

// HAProxy's Lua has the keys and the answers of the Go middleware.
func TestSameKeysThroughHAProxyLua(t *testing.T) {
	t.Parallel()
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
		h := startLua(tb, serve(tb, d, gateway.DoorConfig{}).Addr)
		return gatewaytest.DoorUnderTest{
			NoHeaders: true,
			Without: []string{
				"non-ASCII, raw", "non-ASCII path, raw", "fragment", // HAProxy answers 400
				"broken escape in the path", "OPTIONS of the server", // the application, which is net/http, answers itself
				"address", "IPv6 address", "address that a client claims", // HAProxy sees the test's own
			},
			Ask: func(tb testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
				return gatewaytest.AskThrough(tb, h.Addr, r)
			},
		}
	})
}

// Without hotparam requests pass.
func TestHAProxyLuaFailsOpen(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{})
	h := startLua(t, f.Addr)
	request := &gatewaytest.ClientRequest{Method: "GET", Target: "/search?q=phone", Header: http.Header{"X-Original-Uri": {"/other"}, "X-Original-Method": {"POST"}}}
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

// HAProxy before 2.8 would try three times more, a second apart, while a request waits.
func TestHAProxyLuaWantsRetriesOff(t *testing.T) {
	t.Parallel()
	path := real.HAProxyPath(t)
	version, err := exec.Command(path, "-v").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(version), "HAProxy version %d.%d", &major, &minor); err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	out, err := exec.Command(path, "-c", "-f", "../../../../deploy/gateways/haproxy/lua/haproxy.cfg").CombinedOutput()
	isOld := major < 2 || major == 2 && minor < 8
	if says := bytes.Contains(out, []byte("HAProxy 2.8 or later")); isOld != says {
		t.Errorf("HAProxy %d.%d says %s (%v)", major, minor, out, err)
	}
}
