package middleware

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/middleware/internal/meter"
	"github.com/hotparam/hotparam/rules"
)

// metered is a server whose handler is metered in all units.
type metered struct {
	*fixture
	*httptest.Server
	serving sync.WaitGroup // the server does not wait for connections that were taken over
}

func newMetered(t *testing.T, h http.HandlerFunc) *metered {
	m := &metered{fixture: newFixture(t, rules.Rules{Rules: []rules.Rule{
		costRule(t, "bytes", rules.Bytes, 0, 0), costRule(t, "units", rules.Units, 0, 0), costRule(t, "ms", rules.Millis, 0, 0),
	}})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /s", h)
	mux.HandleFunc("GET /free", h)
	guarded := m.Handler(mux)
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.serving.Add(1)
		defer m.serving.Done()
		guarded.ServeHTTP(w, r)
	}))
	return m
}

func (m *metered) start(t *testing.T) {
	m.Start()
	t.Cleanup(func() {
		m.Client().CloseIdleConnections()
		m.Close()
	})
}

// fetch returns the part of the body that arrived.
func (m *metered) fetch(t *testing.T, method, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, m.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := m.Client().Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return string(body)
}

// costs waits for the server to finish and returns the counted costs of q=1.
func (m *metered) costs() (bytes, units, ms int64) {
	m.Close()
	m.serving.Wait()
	got := m.keyCounts()
	return got["bytes GET /s?q=1"], got["units GET /s?q=1"], got["ms GET /s?q=1"]
}

func TestMeter(t *testing.T) {
	body := strings.Repeat("0123456789", 1000)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		method  string
		body    string
		bytes   int64
		units   int64
	}{
		"write": {func(w http.ResponseWriter, r *http.Request) {
			AddCost(r.Context(), 3)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(body))
			_, _ = io.WriteString(w, body)
			AddCost(r.Context(), 4)
		}, "GET", body + body, 20_000, 7},
		"read from": {func(w http.ResponseWriter, _ *http.Request) {
			if _, ok := w.(io.ReaderFrom); !ok {
				panic("no io.ReaderFrom")
			}
			_, _ = io.Copy(w, strings.NewReader(body))
			_, _ = io.Copy(struct{ io.Writer }{w}, strings.NewReader("x"))
		}, "GET", body + "x", 10_001, 0},
		"flush": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "1")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "2")
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				panic(err)
			}
		}, "GET", "12", 2, 0},
		"nothing":  {func(http.ResponseWriter, *http.Request) {}, "GET", "", 0, 0},
		"negative": {func(_ http.ResponseWriter, r *http.Request) { AddCost(r.Context(), -5) }, "GET", "", 0, 0},
		"head":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }, "HEAD", "", 0, 0},
		"content": {func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x.txt", time.Time{}, strings.NewReader(body))
		}, "GET", body, 10_000, 0},
		"panic": {func(w http.ResponseWriter, r *http.Request) {
			AddCost(r.Context(), 9)
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush() // the client may have gone
			panic(http.ErrAbortHandler)
		}, "GET", "half", 4, 9},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetered(t, c.handler)
			m.start(t)
			if got := m.fetch(t, c.method, "/s?q=1"); got != c.body {
				t.Errorf("got %d bytes, %.20q, want %d", len(got), got, len(c.body))
			}
			m.fetch(t, "GET", "/free?q=1")
			bytes, units, ms := m.costs()
			if bytes != c.bytes || units != c.units || ms < 1 {
				t.Errorf("cost %d bytes, %d units, %d ms, want %d, %d, 1 or more", bytes, units, ms, c.bytes, c.units)
			}
			if n := m.Stats(); n.Charged != 1 || n.Panics != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// A handler that hijacks the connection is no longer metered, and not obstructed, with the old
// interface or the new.
func TestMeterHijack(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		"controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetered(t, func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := hijack(w)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				AddCost(r.Context(), 2)
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
			})
			m.start(t)
			if got := m.fetch(t, "GET", "/s?q=1"); got != "hi" {
				t.Errorf("got %q", got)
			}
			if bytes, units, ms := m.costs(); bytes != 0 || units != 2 || ms < 1 {
				t.Errorf("cost %d bytes, %d units, %d ms", bytes, units, ms)
			}
		})
	}
}

// HTTP/2 has no hijacking, and its writer must not claim to support it.
func TestMeterHTTP2(t *testing.T) {
	m := newMetered(t, func(w http.ResponseWriter, r *http.Request) {
		_, hijacks := w.(http.Hijacker)
		_, flushes := w.(http.Flusher)
		fmt.Fprint(w, r.ProtoMajor, hijacks, flushes)
	})
	m.EnableHTTP2 = true
	m.StartTLS()
	defer m.Close()
	if got := m.fetch(t, "GET", "/s?q=1"); got != "2 false true" {
		t.Errorf("%q", got)
	}
	m.Client().CloseIdleConnections()
	if bytes, _, _ := m.costs(); bytes != 12 {
		t.Errorf("%d bytes", bytes)
	}
}

// The meter has exactly the optional interfaces that the writer has.
func TestMeterHasWhatTheWriterHas(t *testing.T) {
	type bare struct{ http.ResponseWriter }
	w := &bare{}
	f, h, rf := struct{ http.Flusher }{}, struct{ http.Hijacker }{}, struct{ io.ReaderFrom }{}
	for _, inner := range []http.ResponseWriter{
		w,
		struct {
			*bare
			http.Flusher
		}{w, f},
		struct {
			*bare
			http.Hijacker
		}{w, h},
		struct {
			*bare
			io.ReaderFrom
		}{w, rf},
		struct {
			*bare
			http.Flusher
			http.Hijacker
		}{w, f, h},
		struct {
			*bare
			http.Flusher
			io.ReaderFrom
		}{w, f, rf},
		struct {
			*bare
			http.Hijacker
			io.ReaderFrom
		}{w, h, rf},
		struct {
			*bare
			http.Flusher
			http.Hijacker
			io.ReaderFrom
		}{w, f, h, rf},
	} {
		has := func(w http.ResponseWriter) string {
			_, flushes := w.(http.Flusher)
			_, hijacks := w.(http.Hijacker)
			_, reads := w.(io.ReaderFrom)
			return fmt.Sprint("flush ", flushes, ", hijack ", hijacks, ", read ", reads)
		}
		m := &meter.Response{ResponseWriter: inner}
		if got, want := has(m.WithInterfacesOf(inner)), has(inner); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if u, ok := m.WithInterfacesOf(inner).(interface{ Unwrap() http.ResponseWriter }); !ok || u.Unwrap() != inner {
			t.Errorf("%T does not unwrap", inner)
		}
	}
}

// The limit applies to the counted unit, so an expensive key is refused.
func TestExpensiveKeysAreRefused(t *testing.T) {
	rule := costRule(t, "r", rules.Units, 3600, 10)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	f.heat(t, "r GET /s?q=1")
	h := f.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { AddCost(r.Context(), 15) }))
	request := func() int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(context.Background(), "GET", "/s?q=1", nil)
		r.Pattern = "GET /s"
		h.ServeHTTP(w, r)
		return w.Code
	}
	if a, b := request(), request(); a != http.StatusOK || b != http.StatusTooManyRequests {
		t.Errorf("%d, then %d", a, b)
	}
	f.now += 6 * time.Second
	if a, b := request(), request(); a != http.StatusOK || b != http.StatusTooManyRequests {
		t.Errorf("when it is earned: %d, then %d", a, b)
	}
}
