package auth

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// Requests have the same keys and answers through a gateway as with the Go middleware.
func TestSameKeys(t *testing.T) {
	for s := Forwarded; s <= Nginx; s++ {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
				f := serve(tb, d, gateway.DoorConfig{})
				door := gatewaytest.DoorUnderTest{Ask: func(tb testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
					return f.asGateway(s, r)
				}}
				if s == Envoy {
					door.Without = []string{
						"OPTIONS of the server",        // Envoy finds no route for it
						"absolute form",                // Envoy passes the path and the query alone
						"absolute form without a path", //
						"broken escape in the path",    // net/http answers 400 to the gateway
						"address that a client claims", // see TestClientAddress
					}
				}
				if s == Forwarded {
					door.Without = []string{"address that a client claims"}
				}
				return door
			})
		})
	}
}

// asGateway sends a request to the door as a gateway of the scheme does, and returns the answer
// that the gateway gives its client.
func (f *fixture) asGateway(s Scheme, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
	var header []string
	for name, values := range r.Header {
		for _, value := range values {
			header = append(header, name+": "+value)
		}
	}
	got := f.ask(s, r.Method, r.Target, r.Addr, header...)
	a := gatewaytest.DoorAnswer{Status: got.status, Header: got.header, Body: got.body}
	switch {
	case got.status == s.success():
		a.Status = 0
	case s == Nginx && got.status == http.StatusForbidden:
		a.Status, _ = strconv.Atoi(got.header.Get(statusHeader))
		a.Body = got.header.Get(bodyHeader)
	}
	if r.Method == http.MethodHead {
		a.Body = ""
	}
	return a
}

const oneEach = `
  - {id: q, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
  - {id: orders, match: {route: "POST /orders"}, by: [user], limit: {rate: 1/1h, burst: 1}}
`

func TestAnswers(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{})
	for s := Forwarded; s <= Nginx; s++ {
		target := "/search?q=" + s.String()
		pass, refuse := f.ask(s, "GET", target, "192.0.2.1"), f.ask(s, "GET", target, "192.0.2.1")
		if pass.status != s.success() || pass.body != "" || pass.header.Get(decisionHeader) != "within" || pass.header.Get("RateLimit") == "" {
			t.Errorf("%s: a request that passes: %+v", s, pass)
		}
		status, body := refuse.status, refuse.body
		if s == Nginx {
			if status != http.StatusForbidden || body != "" {
				t.Errorf("%s: a request that is refused: %+v", s, refuse)
			}
			status, _ = strconv.Atoi(refuse.header.Get(statusHeader))
			body = refuse.header.Get(bodyHeader)
		}
		if status != http.StatusTooManyRequests || !strings.Contains(body, "quota-exceeded") || refuse.header.Get("Retry-After") == "" ||
			refuse.header.Get(decisionHeader) != "limited" || refuse.header.Get("Content-Type") != "application/problem+json" ||
			refuse.header.Get("RateLimit-Policy") == "" || refuse.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: a request that is refused: %+v", s, refuse)
		}
	}
	if s := f.Figures(); s.Passed != 4 || s.Refused != 4 {
		t.Errorf("stats: %+v", s)
	}
}

// A rule may answer with a success in place of the application. A gateway would read that as "let
// it pass".
func TestServedAnswers(t *testing.T) {
	t.Parallel()
	f := open(t, `
  - {id: ok, match: {route: "GET /ok"}, limit: {rate: 1/1h, burst: 1, serve: {status: 200, type: text/plain, body: "from a cache"}}}
  - {id: away, match: {route: "GET /away"}, limit: {rate: 1/1h, burst: 1, serve: {status: 503, type: text/plain, body: "sold out"}}}
  - {id: line, match: {route: "GET /line"}, limit: {rate: 1/1h, burst: 1, serve: {status: 503, type: application/problem+json, body: "{}"}}}
  - {id: lines, match: {route: "GET /lines"}, limit: {rate: 1/1h, burst: 1, serve: {status: 503, type: application/problem+json, body: "{\n}"}}}
`, gateway.DoorConfig{})
	second := func(s Scheme, target string) (status int, body string) {
		f.ask(s, "GET", target, "192.0.2.1")
		r := f.ask(s, "GET", target, "192.0.2.1")
		if s == Nginx {
			r.status, _ = strconv.Atoi(r.header.Get(statusHeader))
			r.body = r.header.Get(bodyHeader)
		}
		return r.status, r.body
	}
	for s := Forwarded; s <= Nginx; s++ {
		if status, body := second(s, "/ok"); status != http.StatusTooManyRequests || strings.Contains(body, "cache") {
			t.Errorf("%s: an answer that is a success: %d %q, want the default refusal", s, status, body)
		}
		// nginx cannot choose the type of a body, and Envoy treats a 503 as an error.
		if status, body := second(s, "/away"); (s != Nginx && s != Envoy) != (status == http.StatusServiceUnavailable && body == "sold out") {
			t.Errorf("%s: an answer that is none: %d %q", s, status, body)
		}
	}
	if status, body := second(Nginx, "/line"); status != http.StatusServiceUnavailable || body != "{}" {
		t.Errorf("a body of one line in a header: %d %q", status, body)
	}
	if status, body := second(Nginx, "/lines"); status != http.StatusTooManyRequests || body == "{" {
		t.Errorf("a body of two lines in a header: %d %q, want the default refusal", status, body)
	}
	if got := f.Faults(gateway.Unsendable); got == 0 {
		t.Error("stats: no answer was unsendable")
	}
}

// An endpoint uses only the headers of its scheme.
func TestSpoofedHeaders(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{})
	own := map[Scheme][]string{
		Forwarded: {"X-Forwarded-Method: POST", "X-Forwarded-Uri: /nothing", "X-Forwarded-Host: other"},
		Original:  {"X-Original-Method: POST", "X-Original-URI: /nothing", "X-Real-IP: 203.0.113.1"},
		Nginx:     {"X-Original-Method: POST", "X-Original-URI: /nothing", "X-Real-IP: 203.0.113.1"},
	}
	spoofed := []string{
		"X-Http-Method-Override: POST", "X-Rewrite-Url: /nothing", "X-Envoy-Original-Path: /nothing", "X-Hotparam: within", "X-Hotparam-Status: 200",
	}
	for s := Forwarded; s <= Nginx; s++ {
		headers := slices.Clone(spoofed)
		for other := Forwarded; other <= Nginx; other++ {
			if !slices.Equal(own[other], own[s]) {
				headers = append(headers, own[other]...)
			}
		}
		refused := 0
		for range 3 {
			if f.ask(s, "GET", "/search?q=spoof-"+s.String(), "192.0.2.1", headers...).status >= 400 {
				refused++
			}
		}
		if refused != 2 {
			t.Errorf("%s: %d of 3 requests with spoofed headers were refused, want 2", s, refused)
		}
		// Some gateways add the headers of their scheme and keep the client's.
		for i, header := range own[s] {
			name, value, _ := strings.Cut(header, ": ")
			var host []string // which ask does not send
			if name == forwardedHost {
				host = []string{header}
			}
			for _, twice := range []string{value, ""} {
				before := f.Faults(gateway.Ambiguous)
				r := f.ask(s, "GET", "/search?q=twice-"+fmt.Sprint(s, i), "192.0.2.1", append([]string{name + ": " + twice}, host...)...)
				status := fmt.Sprint(r.status)
				if s == Nginx {
					status = r.header.Get(statusHeader)
				}
				if status != "400" || f.Faults(gateway.Ambiguous) != before+1 {
					t.Errorf("%s: %q beside the gateway's: %+v", s, name+": "+twice, r)
				}
			}
		}
	}
}

// A header that a gateway does not send is not replaced by another: the request passes, and its
// answer says so.
func TestMissingHeaders(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{})
	for _, s := range []Scheme{Forwarded, Original, Nginx} {
		for range 3 {
			r := f.send("GET /"+s.String()+"?q=1", "X-Hotparam-Target: /search?q=1")
			if r.status != s.success() || r.header.Get(decisionHeader) != "open" {
				t.Errorf("%s: a question without a URI: %+v", s, r)
			}
		}
	}
	if got := f.Faults(gateway.Incomplete); got != 9 {
		t.Errorf("stats: %d questions lack a header, want 9", got)
	}
	if n := strings.Count(f.Log.String(), "does not send a required header"); n != 1 || !strings.Contains(f.Log.String(), "X-Forwarded-Method") {
		t.Errorf("%d lines in the log, want one:\n%s", n, f.Log)
	}
	// Without a method header, the method of the subrequest counts, which is GET here.
	f.send("GET /original", "X-Original-URI: /search?q=2")
	if r := f.send("GET /original", "X-Original-URI: /search?q=2"); r.status != http.StatusTooManyRequests {
		t.Errorf("a question without a method: %+v", r)
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{}, Endpoint{"/auth", Forwarded}, Endpoint{"/ask/envoy", Envoy})
	for _, path := range []string{"/", "/auth/", "/authentic", "/auth/../auth", "//auth", "/ask", "/ask/envoys", "/forwarded", "/nginx"} {
		if r := f.send("GET "+path, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /search?q=1"); r.status != http.StatusNotFound {
			t.Errorf("%s: %+v, want 404", path, r)
		}
	}
	// A client's path reaches no other endpoint.
	for i, path := range []string{"/ask/envoy/../../auth", "/ask/envoy?/../auth", "/ask/envoy?/search?q=%zz&x=/%zz", "/ask/envoy//../auth", "/ask/envoy/search?q=x"} {
		if r := f.send("GET "+path, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /search?q="+strconv.Itoa(i)); r.status != http.StatusOK {
			t.Errorf("%s: %+v", path, r)
		}
		if r := f.send("GET "+path, "X-Forwarded-Method: GET", "X-Forwarded-Uri: /search?q="+strconv.Itoa(i)); (r.status == http.StatusTooManyRequests) != strings.Contains(path, "search") {
			t.Errorf("%s, again: %+v", path, r)
		}
	}
	for name, endpoints := range map[string][]Endpoint{
		"no slash":     {{"auth", Forwarded}},
		"a query":      {{"/auth?x", Forwarded}},
		"no scheme":    {{"/auth", 0}},
		"same path":    {{"/auth", Forwarded}, {"/auth", Original}},
		"below Envoy":  {{"/auth", Envoy}, {"/auth/nginx", Nginx}},
		"below root":   {{"/", Envoy}, {"/nginx", Nginx}},
		"Envoy inside": {{"/auth/envoy", Envoy}, {"/auth", Envoy}},
	} {
		if _, err := New(gateway.DoorConfig{Decider: f.Decider}, endpoints); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The address is the client's as seen by the gateway. Earlier addresses in X-Forwarded-For are
// believed as the file's client setting says.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	f := open(t, `
  - {id: addr, match: {route: "GET /a"}, by: ["addr:ip"], limit: {rate: 1/1h, burst: 1}}
`, gateway.DoorConfig{})
	for s := Forwarded; s <= Nginx; s++ {
		addr := "192.0.2." + strconv.Itoa(int(s))
		claims := func(claimed string) reply {
			if s == Original || s == Nginx {
				return f.ask(s, "GET", "/a", addr, "X-Forwarded-For: "+claimed)
			}
			return f.ask(s, "GET", "/a", claimed+", "+addr)
		}
		if r := claims("198.51.100.1"); r.status != s.success() {
			t.Errorf("%s: the first request of %s: %+v", s, addr, r)
		}
		if r := claims("198.51.100.2"); r.status == s.success() {
			t.Errorf("%s: another request of %s passes as it claims another address", s, addr)
		}
	}
}
