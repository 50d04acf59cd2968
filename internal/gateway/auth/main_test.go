package auth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/attach"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// fixture is a door that is served.
type fixture struct {
	t    testing.TB
	door *Door
	addr string
	log  *testenv.Log
	stop func()
}

// serve serves a door over the decider.
func serve(t testing.TB, d *gateway.Decider, c Config) *fixture {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, d, c)
}

func serveOn(t testing.TB, l net.Listener, d *gateway.Decider, c Config) *fixture {
	t.Helper()
	f := &fixture{t: t, addr: l.Addr().String(), log: new(testenv.Log)}
	c.Decider, c.Log = d, slog.New(slog.NewTextHandler(f.log, nil))
	var err error
	if f.door, err = New(c); err != nil {
		t.Fatal(err)
	}
	f.stop = testenv.Running(t, func(ctx context.Context) error { return f.door.Serve(ctx, l) })
	return f
}

// open serves a door over these rules.
func open(t testing.TB, rules string, c Config) *fixture {
	t.Helper()
	g := gatewaytest.Open(t, rules, attach.WithMiddleware(middleware.WithHeaders()))
	d, err := gateway.New(gateway.Config{Hotparam: g.Hotparam})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, d, c)
}

// reply is what a gateway gets.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request, which is written as it stands: "GET /forwarded", and a header a line.
func (f *fixture) send(line string, header ...string) reply {
	f.t.Helper()
	conn, err := net.Dial("tcp", f.addr)
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

// ask asks by a scheme's default endpoint, as its gateway does.
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
