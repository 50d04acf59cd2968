package auth

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// fixture is a served door.
type fixture struct {
	*gatewaytest.Fixture
	t    testing.TB
	door *Door
}

// serve serves a door of the decider.
func serve(t testing.TB, d *gateway.Decider, c gateway.DoorConfig) *fixture {
	t.Helper()
	return serveOn(t, gatewaytest.Listen(t, "127.0.0.1:0"), d, c)
}

func serveOn(t testing.TB, l net.Listener, d *gateway.Decider, c gateway.DoorConfig) *fixture {
	t.Helper()
	return serveFixture(t, l, gatewaytest.NewOf(t, d), c)
}

// open serves a door of these rules.
func open(t testing.TB, rules string, c gateway.DoorConfig, endpoints ...Endpoint) *fixture {
	t.Helper()
	return serveFixture(t, gatewaytest.Listen(t, "127.0.0.1:0"), gatewaytest.New(t, rules, gateway.Config{}), c, endpoints...)
}

func serveFixture(t testing.TB, l net.Listener, around *gatewaytest.Fixture, c gateway.DoorConfig, endpoints ...Endpoint) *fixture {
	t.Helper()
	c.Decider, c.Log = around.Decider, around.Logger
	door, err := New(c, endpoints)
	if err != nil {
		t.Fatal(err)
	}
	around.ServeOn(l, door)
	return &fixture{around, t, door}
}

// reply is the answer that a gateway gets.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request with the given lines: "GET /forwarded", and one line for each header.
func (f *fixture) send(line string, header ...string) reply {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.Addr)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return exchange(f.t, conn, line, header...)
}

func exchange(t testing.TB, conn net.Conn, line string, header ...string) reply {
	t.Helper()
	text := line + " HTTP/1.1\r\nConnection: close\r\n" + strings.Join(append(header, "", ""), "\r\n")
	if !strings.Contains(text, "\r\nHost: ") {
		text = strings.Replace(text, "\r\n", "\r\nHost: shop.example\r\n", 1)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(line, " ")
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%.100s: %v", line, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%.100s: %v", line, err)
	}
	return reply{response.StatusCode, response.Header, string(body)}
}

// ask asks at a scheme's default endpoint, as its gateway does.
func (f *fixture) ask(s Scheme, method, target, addr string, header ...string) reply {
	f.t.Helper()
	switch s {
	case Forwarded:
		header = append(header, "X-Forwarded-Method: "+method, "X-Forwarded-Uri: "+target, "X-Forwarded-For: "+addr)
	case Original, Nginx:
		header = append(header, "X-Original-Method: "+method, "X-Original-URI: "+target, "X-Real-IP: "+addr)
	case Envoy:
		return f.send(fmt.Sprintf("%s /envoy%s", method, target), append(header, "X-Forwarded-For: "+addr)...)
	}
	return f.send("GET /"+s.String(), header...)
}
