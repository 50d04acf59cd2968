package middlewaretest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/middleware"
)

var endCases = []Case{
	{"concurrency", testConcurrency},
	{"concurrency of an upgrade", testUpgrade},
	{"panics", testPanics},
	{"client that leaves", testClientLeaves},
	{"cost in bytes", testBytes},
	{"cost in units", testUnits},
	{"cost in time", testTime},
}

const oneAtATime = `{id: reports, match: {route: "GET /report"}, limit: {concurrency: 1}}`

// A permit is held until the handler ends.
func testConcurrency(t *testing.T, s Start) {
	g := newGate()
	f := start(t, s, oneAtATime, []Route{{Method: "GET", Pattern: "/report", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		g.wait()
		_, _ = io.WriteString(w, "report")
	})}})
	first := f.background(f.request(t.Context(), "GET", "/report", nil))
	f.awaitEntry(g)
	if a := f.get("/report"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("beside another: status %d, headers %v", a.status, a.header)
	}
	close(g.open)
	if a := f.result(first); a.status != http.StatusOK || a.body != "report" {
		t.Errorf("the first: %+v", a)
	}
	f.await("the permit", func() bool { return f.get("/report").status == http.StatusOK })
}

// A connection that a handler hijacks, as for a WebSocket, holds its permit until the
// handler ends, and no longer.
func testUpgrade(t *testing.T, s Start) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	})
	for _, rule := range []string{oneAtATime, oneAtATime + "\n" + `{id: bytes, match: {route: "*"}, count: bytes, hot: 1000000000/s}`} {
		f := start(t, s, rule, []Route{{Method: "GET", Pattern: "/report", Handler: handler}})
		upgrade := func() (*bufio.Reader, io.Writer, int) {
			conn := f.dial()
			if _, err := io.WriteString(conn, "GET /report HTTP/1.1\r\nHost: suite\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return in, conn, res.StatusCode
		}
		in, out, status := upgrade()
		if status != http.StatusSwitchingProtocols {
			t.Fatalf("status %d", status)
		}
		if _, _, status := upgrade(); status != http.StatusServiceUnavailable {
			t.Errorf("beside another: status %d", status)
		}
		if _, err := io.WriteString(out, "hello\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := in.ReadString('\n'); err != nil || line != "echo hello\n" {
			t.Errorf("%q, %v", line, err)
		}
		f.await("the permit", func() bool {
			_, _, status := upgrade()
			return status == http.StatusSwitchingProtocols
		})
	}
}

// A handler that panics releases its permit and is charged, and the panic propagates.
func testPanics(t *testing.T, s Start) {
	f := start(t, s, oneAtATime+"\n"+`{id: units, match: {route: "GET /report"}, count: units, hot: 1000000/s}`,
		[]Route{{Method: "GET", Pattern: "/report", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			middleware.AddCost(r.Context(), 5)
			panic("the handler's own")
		})}})
	for range 3 {
		a := f.get("/report")
		if a.status != http.StatusInternalServerError && a.status != 0 {
			t.Errorf("status %d, %q", a.status, a.body)
		}
		if strings.Contains(a.body, "hotparam") {
			t.Errorf("body %q", a.body)
		}
	}
	if st := f.guard.Stats(); st.Panics != 0 || st.Busy != 0 {
		t.Errorf("panics counted as the guard's: %d; refused for want of a permit: %d", st.Panics, st.Busy)
	}
	if n := f.counted()["GET /report"]; n != 15 {
		t.Errorf("%d units were counted, want 15", n)
	}
}

// The permit of a client that leaves is free when the handler ends.
func testClientLeaves(t *testing.T, s Start) {
	g := newGate()
	left := make(chan struct{})
	leave := sync.OnceFunc(func() { close(left) })
	f := start(t, s, oneAtATime, []Route{{Method: "GET", Pattern: "/report", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer context.AfterFunc(r.Context(), leave)()
		g.wait()
	})}})
	ctx, cancel := context.WithCancel(t.Context())
	first := f.background(f.request(ctx, "GET", "/report", nil))
	f.awaitEntry(g)
	cancel()
	f.result(first)
	select {
	case <-left:
	case <-time.After(time.Second): // not every server notifies the handler
	}
	for range 20 { // a permit that is wrongly released at once may take a moment
		if a := f.get("/report"); a.status != http.StatusServiceUnavailable {
			t.Errorf("while the handler runs: status %d", a.status)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(g.open)
	f.await("the permit", func() bool { return f.get("/report").status == http.StatusOK })
}

// The bytes of a response's body are counted in whatever way the handler writes them.
func testBytes(t *testing.T, s Start) {
	const size = 10_000
	body := strings.Repeat("x", size)
	route := func(path string, write func(w http.ResponseWriter)) Route {
		return Route{Method: "GET", Pattern: path, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { write(w) })}
	}
	f := start(t, s, `{id: bytes, match: {route: "*"}, count: bytes, hot: 1000000000/s}`, []Route{
		route("/write", func(w http.ResponseWriter) { _, _ = w.Write([]byte(body)) }),
		route("/string", func(w http.ResponseWriter) { _, _ = io.WriteString(w, body) }),
		route("/copy", func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader(body)) }),
		route("/copyonly", func(w http.ResponseWriter) { _, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader(body)}) }),
		route("/parts", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusAccepted)
			for range 10 {
				_, _ = io.WriteString(w, body[:size/10])
			}
		}),
	})
	for _, path := range []string{"/write", "/string", "/copy", "/copyonly", "/parts"} {
		a := f.get(path)
		if len(a.body) != size {
			t.Errorf("GET %s: status %d, %d bytes", path, a.status, len(a.body))
		}
		f.await("the bytes of "+path, func() bool {
			n, counted := f.counted()["GET "+path]
			if counted && n != size {
				t.Errorf("GET %s: %d bytes were counted, want %d", path, n, size)
			}
			return counted
		})
	}
}

// A handler adds to its request's cost through its context.
func testUnits(t *testing.T, s Start) {
	f := start(t, s, `{id: units, match: {route: "*"}, count: units, hot: 1000000/s}`,
		[]Route{{Method: "GET", Pattern: "/rows", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			middleware.AddCost(r.Context(), 40)
			middleware.AddCost(r.Context(), 2)
		})}})
	f.wantStatus("/rows", 200)
	f.await("42 units", func() bool { return f.counted()["GET /rows"] == 42 })
}

// The time of a handler is counted, and charged to the limit, while it runs.
func testTime(t *testing.T, s Start) {
	g := newGate()
	f := start(t, s, `{id: hot, match: {route: "GET /slow"}, count: ms, hot: 1000000/s}
		{id: limit, match: {route: "GET /slow"}, count: ms, limit: {rate: 1ms/1h, burst: 50ms}}`,
		[]Route{{Method: "GET", Pattern: "/slow", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { g.wait() })}})
	begin := time.Now()
	first := f.background(f.request(t.Context(), "GET", "/slow", nil))
	f.awaitEntry(g)
	ms := int64(0)
	f.await("the time of a handler that runs", func() bool {
		ms += f.counted()["GET /slow"]
		return ms > 0
	})
	f.await("the charge of a handler that runs", func() bool {
		return !f.guard.Check(middleware.Request{Method: "GET", Path: "/slow", Pattern: "GET /slow"}).Allowed
	})
	f.wantStatus("/slow", 429)
	close(g.open)
	if a := f.result(first); a.status != http.StatusOK {
		t.Errorf("status %d", a.status)
	}
	f.await("the charge", func() bool { return f.guard.Stats().Charged == 1 })
	if ms += f.counted()["GET /slow"]; ms > time.Since(begin).Milliseconds()+1 {
		t.Errorf("%d ms are counted of a request of %v", ms, time.Since(begin))
	}
}
