package onhot

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// pipes is a listener within the process, as bubbles need.
type pipes chan net.Conn

func (l pipes) dial() net.Conn {
	a, b := net.Pipe()
	l <- b
	return a
}

// Accept implements [net.Listener].
func (l pipes) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (l pipes) Close() error { close(l); return nil }

// Addr implements [net.Listener].
func (l pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// startServer starts a server of net/http, for HTTP/2 without TLS too.
func startServer(h http.Handler) (conns pipes, stop func()) {
	conns = make(pipes)
	server := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(conns)
	}()
	return conns, func() {
		_ = server.Close()
		<-done
	}
}

// Clients of a server that leave, or do not read, take nothing from the others.
func TestClientsOfAServer(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, c := range []struct {
			name   string
			leaves [2]bool // the leader's client, the other
			gone   int64
		}{{"none", [2]bool{}, 0}, {"leader", [2]bool{true, false}, 1}, {"follower", [2]bool{false, true}, 1}, {"both", [2]bool{true, true}, 2}} {
			t.Run(fmt.Sprintf("HTTP/%d/%s leaves", version, c.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Minute, Wait: 10 * time.Second}, slow(time.Second))
					defer closeCache(t, s.Cache)
					conns, stop := startServer(s)
					defer stop()
					var errs [2]error
					for i, leaves := range c.leaves {
						go func() {
							ctx, cancel := context.WithCancel(context.Background())
							defer cancel()
							if leaves {
								time.AfterFunc(500*time.Millisecond, cancel)
							}
							errs[i] = fetch(ctx, conns, version)
						}()
						synctest.Wait()
					}
					time.Sleep(2 * time.Second)
					synctest.Wait()
					for i, leaves := range c.leaves {
						if (errs[i] != nil) != leaves {
							t.Errorf("client %d: %v", i, errs[i])
						}
					}
					if err := fetch(context.Background(), conns, version); err != nil {
						t.Error(err)
					}
					got := s.Stats()
					if s.calls.Load() != 1 || got.How[Gone] != c.gone || got.How[Led]+got.How[Joined] != 2-c.gone || got.How[Hit] != 1 {
						t.Errorf("%d calls, %v", s.calls.Load(), got.How)
					}
				})
			})
		}
	}
}

// fetch requests the answer of slow over a connection of its own.
func fetch(ctx context.Context, conns pipes, version int) error {
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conns.dial(), nil },
		Protocols:   new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(version == 1)
	transport.Protocols.SetUnencryptedHTTP2(version == 2)
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://example.com/", nil)
	if err != nil {
		return err
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && (string(body) != "answer" || res.ProtoMajor != version) {
		err = fmt.Errorf("%s %q", res.Proto, body)
	}
	return err
}

// A client that does not read its answer delays no other.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, hour, slow(0))
		defer closeCache(t, s.Cache)
		conns, stop := startServer(s)
		defer stop()
		idle := conns.dial()
		_, _ = io.WriteString(idle, "GET / HTTP/1.1\r\nHost: example.com\r\nAccept-Encoding: gzip\r\n\r\n")
		synctest.Wait()
		if err := fetch(context.Background(), conns, 1); err != nil || s.calls.Load() != 1 {
			t.Errorf("%v, %d calls", err, s.calls.Load())
		}
		_ = idle.Close()
	})
}

// ownLines are the headers of a response by which a client can see the cache, and the date.
var ownLines = regexp.MustCompile(`(?m)^(Cache-Status|Age|Date): .*\r\n`)

// talk sends the bytes over a connection and returns what it receives until the server closes it.
func talk(conns pipes, text string) string {
	conn := conns.dial()
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.WriteString(conn, text) }()
	received, _ := io.ReadAll(conn)
	return ownLines.ReplaceAllString(string(received), "")
}

// However a client speaks HTTP, it receives the bytes that it receives without a cache.
func TestBytesOfAServer(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/none":
			w.WriteHeader(http.StatusNoContent)
			return
		case r.URL.Path == "/trailer":
			w.Header().Set("Trailer", "X-Sum")
			defer w.Header().Set("X-Sum", "1")
		case r.Header.Get("Upgrade") != "":
			conn, buffered, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := buffered.ReadString('\n')
			_, _ = io.WriteString(conn, line)
			_ = conn.Close()
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %q", r.URL, body)
	}
	const host, last = "Host: example.com\r\n", "Host: example.com\r\nConnection: close\r\n"
	for _, c := range []struct {
		name, text string
		shared     int64 // requests that an answer from memory serves the second time
	}{
		{"HTTP/1.0", "GET / HTTP/1.0\r\n" + host + "\r\n", 1},
		{"HTTP/1.0, kept", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n" + host + "\r\nGET / HTTP/1.0\r\n\r\n", 2},
		{"pipelined", "GET /a HTTP/1.1\r\n" + host + "\r\nHEAD /b HTTP/1.1\r\n" + host + "\r\nGET /c HTTP/1.1\r\n" + last + "\r\n", 3},
		{"absolute", "GET http://example.com/ HTTP/1.1\r\n" + last + "\r\n", 1},
		{"HEAD", "HEAD / HTTP/1.1\r\n" + last + "\r\n", 1},
		{"no content", "GET /none HTTP/1.1\r\n" + last + "\r\n", 1},
		{"conditional", "GET / HTTP/1.1\r\nIf-None-Match: \"x\"\r\nIf-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT\r\n" + last + "\r\n", 1},
		{"trailer", "GET /trailer HTTP/1.1\r\nTe: trailers\r\n" + last + "\r\n", 0},
		{"a body", "GET / HTTP/1.1\r\nContent-Length: 2\r\n" + host + "\r\nxyGET /after HTTP/1.1\r\n" + last + "\r\n", 1},
		{"an empty body", "GET / HTTP/1.1\r\nContent-Length: 0\r\n" + last + "\r\n", 1},
		{"chunked", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + host + "\r\n2\r\nxy\r\n0\r\n\r\nGET /after HTTP/1.1\r\n" + last + "\r\n", 1},
		{"chunked, empty", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + last + "\r\n0\r\n\r\n", 0},
		{"100-continue", "GET / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n" + last + "\r\nxy", 0},
		{"100-continue without a body", "GET / HTTP/1.1\r\nExpect: 100-continue\r\n" + last + "\r\n", 1},
		{"another expectation", "GET / HTTP/1.1\r\nExpect: x\r\n" + last + "\r\n", 0},
		{"upgrade", "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n" + host + "\r\nhello\n", 0},
		{"h2c", "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n" + host + "\r\nhello\n", 0},
		{"OPTIONS", "OPTIONS * HTTP/1.1\r\n" + last + "\r\n", 0},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, rules.OnHot{Coalesce: true, Cache: time.Minute, Status: []int{200, 204}}, handler)
				defer closeCache(t, s.Cache)
				conns, stop := startServer(s)
				defer stop()
				plain, stopPlain := startServer(s.handler)
				defer stopPlain()
				want := talk(plain, c.text)
				for i, which := range []string{"first", "second"} {
					before := s.Stats().How
					if got := talk(conns, c.text); got != want || !strings.HasPrefix(got, "HTTP/1.") {
						t.Errorf("%s time:\n%q, want\n%q", which, got, want)
					}
					after := s.Stats().How
					if shared := after[Hit] - before[Hit]; i == 1 && shared != c.shared {
						t.Errorf("%d from memory, want %d", shared, c.shared)
					}
				}
			})
		})
	}
}
