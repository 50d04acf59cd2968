package httpserve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// start serves on a free port and returns its address.
func start(t *testing.T, s *Server, wrap func(net.Listener) net.Listener) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if wrap == nil {
		wrap = func(l net.Listener) net.Listener { return l }
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, wrap(l)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a request on a connection and returns the status and the body.
func ask(t *testing.T, c net.Conn, path string) (int, string) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// gate returns a handler whose requests to /slow wait until it is opened.
func gate(t *testing.T) (http.Handler, *atomic.Int64) {
	open, waiting := make(chan struct{}), new(atomic.Int64)
	t.Cleanup(func() { close(open) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			waiting.Add(1)
			<-open
		}
		fmt.Fprint(w, "well")
	}), waiting
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testenv.Eventually(t, what, ok)
}

// Thousands of connections that are silent, or send only a part of a request, never exceed the
// cap, and every health check and scrape is answered.
func TestIdleConnectionsGiveWay(t *testing.T) {
	handler, _ := gate(t)
	s := New(Config{Handler: handler, Health: "/healthy", MaxConnections: 32})
	addr := start(t, s, nil)
	for i := range 500 {
		c := dial(t, addr)
		if i%2 == 0 {
			fmt.Fprint(c, "GET / HT")
		}
		if i%50 == 0 {
			for _, path := range []string{"/healthy", "/metrics"} {
				if code, body := ask(t, dial(t, addr), path); code != 200 {
					t.Fatalf("after %d connections %s: %d %s", i, path, code, body)
				}
			}
		}
	}
	eventually(t, "evictions", func() bool { return s.Stats().Displaced > 400 })
	if st := s.Stats(); st.Connections > 32 || st.Full != 0 {
		t.Errorf("%+v", st)
	}
}

// The connection that has had no request for longest is closed first, and one with a request
// never.
func TestOldestIdleGoesFirst(t *testing.T) {
	handler, waiting := gate(t)
	s := New(Config{Handler: handler, MaxConnections: 16})
	addr := start(t, s, nil)
	busy := dial(t, addr)
	fmt.Fprint(busy, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	eventually(t, "request", func() bool { return waiting.Load() == 1 })
	// The server notices a request's end a little later than its client.
	rests := func() bool { return s.conns.Stats().Used == 1 }
	var conns []net.Conn
	for range 15 {
		c := dial(t, addr)
		if code, _ := ask(t, c, "/"); code != 200 {
			t.Fatal(code)
		}
		eventually(t, "end of the request", rests)
		conns = append(conns, c)
	}
	if code, _ := ask(t, conns[0], "/"); code != 200 { // now the youngest
		t.Fatal(code)
	}
	eventually(t, "end of the request", rests)
	if code, _ := ask(t, dial(t, addr), "/"); code != 200 {
		t.Fatal(code)
	}
	_ = conns[1].SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := conns[1].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest: %v, want it closed", err)
	}
	for _, i := range []int{0, 2, 14} {
		if code, body := ask(t, conns[i], "/"); code != 200 {
			t.Errorf("connection %d: %d %s", i, code, body)
		}
	}
	if st := s.Stats(); st.Displaced != 1 || st.Connections != 16 {
		t.Errorf("%+v", st)
	}
}

// With a request on every connection, only health checks are answered, on the reserve. Further
// connections are closed at once.
func TestHealthHasAReserve(t *testing.T) {
	handler, waiting := gate(t)
	s := New(Config{Handler: handler, Health: "/healthy", MaxConnections: 16})
	addr := start(t, s, nil)
	for range 16 {
		fmt.Fprint(dial(t, addr), "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	eventually(t, "requests", func() bool { return waiting.Load() == 16 })
	for range 40 {
		if code, body := ask(t, dial(t, addr), "/healthy"); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
		if code, _ := ask(t, dial(t, addr), "/slow"); code != 503 {
			t.Fatalf("%d, want 503", code)
		}
	}
	if st := s.Stats(); st.Connections > 16+reserved {
		t.Errorf("%+v", st)
	}
}

// fewFiles is a listener of a process with a few descriptors, including the spares. Beyond those
// its Accept fails as the system's does.
type fewFiles struct {
	net.Listener
	s    *Server
	left int // descriptors left, not counting the server's spares
}

const spares = 4

func (l *fewFiles) Accept() (net.Conn, error) {
	if st := l.s.conns.Stats(); int(st.Connections+st.Spares) >= l.left+spares {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// Without file descriptors health checks are answered with a spare one.
func TestNoDescriptors(t *testing.T) {
	for name, path := range map[string]string{"idle": "", "busy": "/slow"} {
		t.Run(name, func(t *testing.T) {
			handler, waiting := gate(t)
			var log testenv.LogBuffer
			s := New(Config{Handler: handler, Health: "/healthy", Log: slog.New(slog.NewTextHandler(&log, nil))})
			addr := start(t, s, func(l net.Listener) net.Listener { return &fewFiles{l, s, 8} })
			for i := range int64(8) {
				c := dial(t, addr)
				if path != "" {
					fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path)
					eventually(t, "request", func() bool { return waiting.Load() > i })
				}
			}
			for range 20 {
				if code, body := ask(t, dial(t, addr), "/healthy"); code != 200 {
					t.Fatalf("%d %s", code, body)
				}
			}
			if st := s.Stats(); st.Starved == 0 {
				t.Errorf("%+v", st)
			}
			if n := strings.Count(log.String(), "\n"); n > 1 {
				t.Errorf("%d lines:\n%s", n, log.String())
			}
		})
	}
}

func TestHeadersAreBounded(t *testing.T) {
	handler, _ := gate(t)
	s := New(Config{Handler: handler})
	addr := start(t, s, nil)
	c := dial(t, addr)
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", strings.Repeat("x", 2*maxHeaderBytes))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		defer resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
	fmt.Fprint(dial(t, addr), "nonsense\r\n\r\n")
	eventually(t, "counts", func() bool { return s.Stats().TooLarge == 1 && s.Stats().Unreadable == 1 })
	rests := dial(t, addr)
	for range 2 {
		if code, _ := ask(t, rests, "/"); code != 200 {
			t.Errorf("%d", code)
		}
	}
	if st := s.Stats(); st.TooLarge != 1 || st.Unreadable != 1 {
		t.Errorf("%+v", st)
	}
}

// A peer that sends nothing, a request byte by byte, or only a part of its body, is closed and
// counted. One that is idle between requests is closed, too, but not counted as slow.
func TestSlowPeersAreCounted(t *testing.T) {
	s := New(Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})})
	s.headerWithin, s.readWithin, s.idleWithin = 100*time.Millisecond, 150*time.Millisecond, 200*time.Millisecond
	addr := start(t, s, nil)
	ends := func(what string, c net.Conn) {
		t.Helper()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays", what)
		}
	}
	for slow, text := range []string{"", "GET / HTTP/1.1\r\nHost: a\r\nX: ", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"} {
		c := dial(t, addr)
		trickle := make(chan struct{})
		go func() {
			defer close(trickle)
			for _, b := range []byte(text + strings.Repeat("x", 6)) {
				if text != "" {
					_, _ = c.Write([]byte{b})
					time.Sleep(time.Millisecond)
				}
			}
		}()
		ends(text, c)
		<-trickle
		eventually(t, "count", func() bool { return s.Stats().Slow == int64(slow+1) })
	}
	c := dial(t, addr)
	if code, _ := ask(t, c, "/"); code != 200 {
		t.Errorf("%d", code)
	}
	ends("rest", c)
	if st := s.Stats(); st.Slow != 3 {
		t.Errorf("%+v", st)
	}
}
