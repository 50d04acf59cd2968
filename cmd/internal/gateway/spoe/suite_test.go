//go:build real

package spoe

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// ofDecider serves a door of a decider.
func ofDecider(tb testing.TB, d *gateway.Decider) *fixture {
	tb.Helper()
	return serveFixture(tb.(*testing.T), gatewaytest.NewOf(tb, d), nil)
}

// Requests to the door have the keys and answers that they would have with the Go middleware.
func TestSameKeys(t *testing.T) {
	t.Parallel()
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
		f := ofDecider(tb, d)
		p := f.connect()
		return gatewaytest.DoorUnderTest{Ask: func(tb testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
			headers := appendText(appendText(nil, "host"), "shop.example")
			for name, values := range r.Header {
				for _, v := range values {
					headers = appendText(appendText(headers, strings.ToLower(name)), v)
				}
			}
			addr := netip.MustParseAddr(r.Addr)
			src := append([]byte{byte(kindIPv4)}, addr.AsSlice()...)
			if addr.Is6() {
				src[0] = byte(kindIPv6)
			}
			got := p.ask(1, message("check", "method", appendString(nil, r.Method), "uri", appendString(nil, r.Target), "src", src,
				"headers", appendText([]byte{byte(kindBinary)}, string(append(headers, 0, 0)))))
			return answerOf(r, got)
		}}
	})
}

// answerOf returns the answer that HAProxy, with the configuration of deploy/, gives its client
// for these variables.
func answerOf(r *gatewaytest.ClientRequest, got map[string]string) gatewaytest.DoorAnswer {
	a := gatewaytest.DoorAnswer{Header: make(http.Header), Body: got["body"]}
	a.Status, _ = strconv.Atoi(got["status"])
	for name, variable := range map[string]string{"RateLimit": "ratelimit", "RateLimit-Policy": "ratelimit_policy", "Retry-After": "retry_after", "Cache-Control": "cache_control"} {
		if v := got[variable]; v != "" {
			a.Header.Set(name, v)
		}
	}
	if r.Method == http.MethodHead {
		a.Body = ""
	}
	return a
}

// The suite also holds through the real HAProxy.
func TestSameKeysThroughHAProxy(t *testing.T) {
	t.Parallel()
	real.EachHAProxy(t, testSameKeysThroughHAProxy)
}

func testSameKeysThroughHAProxy(t *testing.T, program real.HAProxyProgram) {
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
		f := ofDecider(tb, d)
		f.program = string(program)
		h := f.haproxy(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-App", "1") }))
		without := []string{
			"non-ASCII, raw", "non-ASCII path, raw", "fragment", // HAProxy answers 400
			"broken escape in the path", "OPTIONS of the server", // the application, which is net/http, answers itself
			"address", "IPv6 address", "address that a client claims", // HAProxy sees the test's own
		}
		return gatewaytest.DoorUnderTest{Without: without, Ask: func(tb testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
			return gatewaytest.AskThrough(tb, h.Addr, r)
		}}
	})
}
