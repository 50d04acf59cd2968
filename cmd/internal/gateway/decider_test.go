package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

const once = `
  - {id: q, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
  - {id: user, match: {route: "GET /me"}, by: ["ctx:user"], limit: {rate: 1/1h, burst: 1}}
  - {id: host, match: {route: "GET /host"}, by: ["header:host"], limit: {rate: 1/1h, burst: 1}}
  - {id: ip, match: {route: "GET /ip"}, by: ["addr:ip"], limit: {rate: 1/1h, burst: 1}}
`

func allows(t *testing.T, d *gateway.Decider, c gateway.Call) bool {
	t.Helper()
	c.Method = "GET"
	decision, ticket := d.Begin(t.Context(), &c)
	ticket.End(middleware.Cost{})
	return decision.Allowed
}

// However a client writes a path, it is one page.
func TestPathsEvadeNothing(t *testing.T) {
	clean, raw := decider(t, once, gateway.Config{}), decider(t, once, gateway.Config{RawPaths: true})
	for _, d := range []*gateway.Decider{clean, raw} {
		if !allows(t, d, gateway.Call{Target: "/search?q=a"}) || allows(t, d, gateway.Call{Target: "/search?q=a"}) {
			t.Fatal("the limit does not hold")
		}
	}
	for _, target := range []string{"//search?q=a", "/x/../search?q=a", "/search;v=1?q=a", "/%2e/search?q=%61", "http://h/./search?q=a", "/search?q=a#b", "/.//;/search?q=a"} {
		if allows(t, clean, gateway.Call{Target: target}) {
			t.Errorf("%s passes", target)
		}
	}
	if !allows(t, raw, gateway.Call{Target: "//search?q=a"}) {
		t.Error("raw: //search is another path")
	}
}

func TestCallsParts(t *testing.T) {
	d := decider(t, once, gateway.Config{})
	for name, test := range map[string]struct{ same, other gateway.Call }{
		"context": {gateway.Call{Target: "/me", Context: map[string]string{"user": "a"}}, gateway.Call{Target: "/me", Context: map[string]string{"user": "b"}}},
		"host":    {gateway.Call{Target: "/host", Header: http.Header{"Host": {"a"}}}, gateway.Call{Target: "http://b/host"}},
		"address": {gateway.Call{Target: "/ip", Addr: "192.0.2.1"}, gateway.Call{Target: "/ip", Addr: "[2001:db8::1]:80"}},
		"port":    {gateway.Call{Target: "/ip", Addr: "192.0.2.2:80"}, gateway.Call{Target: "/ip", Addr: "2001:db9::1"}},
	} {
		if !allows(t, d, test.same) || allows(t, d, test.same) || !allows(t, d, test.other) || allows(t, d, test.other) {
			t.Errorf("%s: want each to pass once", name)
		}
	}
	for range 3 { // neither context nor address is known
		if !allows(t, d, gateway.Call{Target: "/me"}) || !allows(t, d, gateway.Call{Target: "/ip"}) {
			t.Error("a request that makes no key was refused")
		}
	}
}

// A caller's name is believed from programs, and from gateways only if they are trusted.
func TestCallers(t *testing.T) {
	for _, trust := range []bool{false, true} {
		var callers []string
		hooks := middleware.WithHooks(middleware.Hooks{Before: func(r middleware.Request) { callers = append(callers, r.Caller) }})
		d := gatewaytest.Open(t, once, hotparam.WithMiddleware(hooks)).Decider(t, gateway.Config{TrustCaller: trust})
		allows(t, d, gateway.Call{Target: "/x", Addr: "2001:db8::7", Caller: "claimed"})
		allows(t, d, gateway.Call{Target: "/x", Caller: "own", FromProgram: true})
		want := "2001:db8::7 own"
		if trust {
			want = "claimed own"
		}
		if got := strings.Join(callers, " "); got != want {
			t.Errorf("trust %v: %q, want %q", trust, got, want)
		}
	}
}

// A wait does not outlast the call.
func TestWaits(t *testing.T) {
	d := decider(t, `  - {id: paced, match: {route: "GET /"}, limit: {rate: 5/s, burst: 1, on_limit: wait, wait: 10s}}`+"\n", gateway.Config{})
	call := &gateway.Call{Method: "GET", Target: "/"}
	d.Begin(t.Context(), call)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if decision, _ := d.Begin(short, call); decision.Allowed {
		t.Errorf("a wait of 200 ms in 20 ms: %+v", decision)
	}
	long, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if decision, _ := d.Begin(long, call); !decision.Allowed || decision.Delay != 0 {
		t.Errorf("a wait that fits: %+v", decision)
	}
	if decision, _ := d.Begin(t.Context(), &gateway.Call{Method: "GET", Target: "/", NoWait: true}); !decision.Allowed || decision.Delay <= 0 {
		t.Errorf("a caller that waits by itself: %+v", decision)
	}
}

// Whatever a gateway passes, a request is decided on, and nothing panics.
func FuzzBegin(f *testing.F) {
	g := gatewaytest.Open(f, once)
	d := g.Decider(f, gateway.Config{})
	f.Add("GET", "/search?q=a", "192.0.2.1", "x")
	f.Add("", "", "", "")
	f.Fuzz(func(t *testing.T, method, target, addr, header string) {
		decision, ticket := d.Begin(t.Context(), &gateway.Call{Method: method, Target: target, Addr: addr, Header: http.Header{"Host": {header}}})
		ticket.End(middleware.Cost{})
		if decision.Reason == rules.ReasonOpen || g.Stats().Guard.Panics != 0 {
			t.Errorf("%q %q: %+v", method, target, decision)
		}
	})
}
