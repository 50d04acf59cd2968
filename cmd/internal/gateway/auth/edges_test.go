package auth

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

func TestToken(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{Token: "s3cret"})
	uri := "X-Original-URI: /search?q=1"
	for name, header := range map[string][]string{
		"none": {uri}, "another": {uri, "X-Hotparam-Token: s3cre"}, "empty": {uri, "X-Hotparam-Token:"},
		"elsewhere": {uri, "Authorization: Bearer s3cret"},
	} {
		if r := f.send("GET /original", header...); r.status != http.StatusUnauthorized {
			t.Errorf("token %s: %+v", name, r)
		}
	}
	if r := f.send("GET /original", uri, "X-Hotparam-Token: s3cret"); r.status != http.StatusOK {
		t.Errorf("with the token: %+v: nothing was counted before", r)
	}
	if got := f.Faults(gateway.Unauthorized); got != 4 {
		t.Errorf("stats: %d unauthorized, want 4", got)
	}
	if strings.Contains(f.Log.String(), "s3cre") {
		t.Errorf("the log has a token:\n%s", f.Log)
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	conn, err := net.Dial("tcp", f.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "GET /original HTTP/1.1\r\nHost: a\r\n\r\n")
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("a connection from elsewhere is served")
	}
	if got := f.Closed("not_allowed"); got != 1 {
		t.Errorf("stats: %d foreign, want 1", got)
	}
}

// A Unix socket can be used by whoever may open it, whatever networks are allowed.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	d := gatewaytest.Open(t, oneEach).Decider(t, gateway.Config{})
	path := filepath.Join(t.TempDir(), "auth.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, d, gateway.DoorConfig{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if r := exchange(t, conn, "GET /nginx", "X-Original-Method: GET", "X-Original-URI: /search?q=1"); r.status != http.StatusNoContent {
		t.Errorf("by a Unix socket: %+v", r)
	}
}

// A request waits only if its delay fits into the time that the gateway has.
func TestWait(t *testing.T) {
	t.Parallel()
	f := open(t, `
  - {id: slow, match: {route: "GET /slow"}, limit: {rate: 1/10s, burst: 1, wait: 1m}}
  - {id: quick, match: {route: "GET /quick"}, limit: {rate: 200/s, burst: 1, wait: 1m}}
`, gateway.DoorConfig{Timeout: 200 * time.Millisecond})
	f.ask(Original, "GET", "/slow", "")
	start := time.Now()
	if r := f.ask(Original, "GET", "/slow", ""); r.status != http.StatusTooManyRequests {
		t.Errorf("a delay of 10 s: %+v", r)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a delay of 10 s took %v", took)
	}
	f.ask(Original, "GET", "/quick", "")
	if r := f.ask(Original, "GET", "/quick", ""); r.status != http.StatusOK {
		t.Errorf("a delay of 5 ms: %+v", r)
	}
}

// Permits are returned at once: no gateway reports the end of its request.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	f := open(t, `
  - {id: few, match: {route: "GET /few"}, limit: {concurrency: 1}}
`, gateway.DoorConfig{})
	for range 3 {
		if r := f.ask(Forwarded, "GET", "/few", ""); r.status != http.StatusOK {
			t.Errorf("%+v", r)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{MaxConnections: 64})
	// As long as nginx or Envoy allows a client's path to be.
	long := strings.Repeat("a", 60<<10)
	for s := Forwarded; s <= Nginx; s++ {
		if r := f.ask(s, "GET", "/search?q="+s.String()+long, ""); r.status != s.success() {
			t.Errorf("%s: a target of 60 KiB: %d", s, r.status)
		}
		if r := f.ask(s, "GET", "/search?q="+s.String()+long, ""); r.status == s.success() {
			t.Errorf("%s: a second request with a target of 60 KiB passes", s)
		}
	}
	// Longer ones are refused, never passed undecided.
	conn, err := net.Dial("tcp", f.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		_, _ = fmt.Fprintf(conn, "GET /original HTTP/1.1\r\nHost: a\r\nX-Original-URI: /%s\r\n\r\n", strings.Repeat("b", 1<<20))
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a target of 1 MiB: %s, want 431", response.Status)
	}
	// Silent connections are closed to make room.
	var idle []net.Conn
	for range 200 {
		c, err := net.Dial("tcp", f.Addr)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	if r := f.ask(Original, "GET", "/search?q=idle", ""); r.status != http.StatusOK {
		t.Errorf("beside idle connections: %+v", r)
	}
	if s := f.Figures(); s.Connections > 64+32 || s.Closed["idle"] == 0 {
		t.Errorf("stats: %+v, want at most 64 connections and some more", s)
	}
	for _, c := range idle {
		c.Close()
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(gateway.DoorConfig{}, nil); err == nil {
		t.Error("no decider: no error")
	}
	for s := Forwarded; s <= Nginx; s++ {
		if got, err := ParseScheme(s.String()); got != s || err != nil {
			t.Errorf("ParseScheme(%q) = %v, %v", s, got, err)
		}
	}
	if _, err := ParseScheme("any"); err == nil {
		t.Error(`ParseScheme("any"): no error`)
	}
}
