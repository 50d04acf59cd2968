package middlewaretest

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/middleware"
)

// longest is the time that a case waits for an event that should be near.
var longest = 20 * time.Second

var discard = log.New(io.Discard, "", 0)

// countingSink is a sink that adds up the counts that it is sent, by key.
type countingSink struct {
	collector.CountsOnly
	mu     sync.Mutex
	counts map[string]int64
}

func (s *countingSink) Send(_ context.Context, _ collector.Flush, counts []collector.Count) collector.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range counts {
		s.counts[string(c.Text)] += c.N
	}
	return collector.Sent{Lines: int64(len(counts))}
}

func (s *countingSink) Fit(text []byte) []byte { return text }
func (s *countingSink) Close() error           { return nil }

// fixture is a server and its guard.
type fixture struct {
	t      *testing.T
	guard  *middleware.Guard
	counts *collector.Collector
	sink   *countingSink
	addr   string
	url    string
	client *http.Client
	calls  atomic.Int64 // calls of the default handler
}

// start starts a server with these rules, one per line in the file's syntax, and routes. A
// route without a handler answers "served".
func start(t *testing.T, start Start, rules string, routes []Route, opts ...middleware.Option) *fixture {
	t.Helper()
	return startWith(t, start, Server{Routes: routes}, rules, opts...)
}

func startWith(t *testing.T, start Start, s Server, rules string, opts ...middleware.Option) *fixture {
	t.Helper()
	f := &fixture{t: t, sink: &countingSink{counts: make(map[string]int64)}}
	f.guard, f.counts = newGuard(t, f.sink, rules, opts...)
	s.Guard = f.guard
	s.Routes = slices.Clone(s.Routes)
	for i := range s.Routes {
		if s.Routes[i].Handler == nil {
			s.Routes[i].Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				f.calls.Add(1)
				_, _ = io.WriteString(w, "served")
			})
		}
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	f.client = &http.Client{Transport: transport, Timeout: longest, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	f.url = start(t, s)
	f.addr = strings.TrimPrefix(f.url, "http://")
	return f
}

func newGuard(tb testing.TB, sink collector.Sink, rules string, opts ...middleware.Option) (*middleware.Guard, *collector.Collector) {
	tb.Helper()
	text := "namespace: suite\nrules:\n"
	for line := range strings.Lines(rules) {
		if line = strings.TrimSpace(line); line != "" {
			text += "  - " + line + "\n"
		}
	}
	file, err := config.Parse("suite", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: file.Rules, MaxKeys: 1 << 12})
	if err != nil {
		tb.Fatal(err)
	}
	answers := newAnswers(tb)
	guard, err := middleware.New(file.Rules, counts, append([]middleware.Option{middleware.WithSharer(answers)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	answers.Adopt(file.Rules)
	return guard, counts
}

// response is what a client received. Its status is 0 if the connection was closed.
type response struct {
	status int
	header http.Header
	body   string
}

func (f *fixture) request(ctx context.Context, method, target string, body io.Reader) *http.Request {
	f.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, f.url, body)
	if err != nil {
		f.t.Fatal(err)
	}
	if req.URL, err = req.URL.Parse(f.url + target); err != nil {
		f.t.Fatal(err)
	}
	return req
}

func (f *fixture) do(req *http.Request) response {
	res, err := f.client.Do(req)
	if err != nil {
		return response{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return response{}
	}
	return response{res.StatusCode, res.Header, string(body)}
}

func (f *fixture) send(method, target string) response {
	f.t.Helper()
	return f.do(f.request(f.t.Context(), method, target, nil))
}

func (f *fixture) get(target string) response {
	f.t.Helper()
	return f.send(http.MethodGet, target)
}

// wantStatus sends GET requests and compares their statuses.
func (f *fixture) wantStatus(target string, want ...int) {
	f.t.Helper()
	got := make([]int, len(want))
	for i := range got {
		got[i] = f.get(target).status
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("GET %s: statuses %v, want %v", target, got, want)
	}
}

// counted returns the counts of keys since its last call.
func (f *fixture) counted() map[string]int64 {
	f.counts.Flush(context.Background(), time.Unix(0, 0))
	f.sink.mu.Lock()
	defer f.sink.mu.Unlock()
	counts := f.sink.counts
	f.sink.counts = make(map[string]int64)
	return counts
}

func (f *fixture) keys() []string { return slices.Sorted(maps.Keys(f.counted())) }

// await waits until a condition holds.
func (f *fixture) await(what string, condition func() bool) {
	f.t.Helper()
	for end := time.Now().Add(longest); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: not within %v", what, longest)
		}
	}
}

// dial opens a connection to the server, which is closed when the test ends.
func (f *fixture) dial() net.Conn {
	f.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(f.t.Context(), "tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(longest)); err != nil {
		f.t.Fatal(err)
	}
	return conn
}

// handlerGate holds handlers until it is opened.
type handlerGate struct {
	entered chan struct{}
	open    chan struct{}
}

func newGate() *handlerGate {
	return &handlerGate{entered: make(chan struct{}, 16), open: make(chan struct{})}
}

// wait holds a handler until the gate opens. The end of the request's context does not end it. If the
// gate stays shut, wait ends long after the case has failed. A case that waits for something to happen
// while the handler runs must not see what happens at its end.
func (g *handlerGate) wait() {
	g.entered <- struct{}{}
	select {
	case <-g.open:
	case <-time.After(3 * longest):
	}
}

// awaitEntry waits until a handler is in the gate.
func (f *fixture) awaitEntry(g *handlerGate) {
	f.t.Helper()
	select {
	case <-g.entered:
	case <-time.After(longest):
		f.t.Fatal("no request has reached the handler")
	}
}

// background sends a request in a separate goroutine. The channel receives the answer.
func (f *fixture) background(req *http.Request) <-chan response {
	done := make(chan response, 1)
	go func() { done <- f.do(req) }()
	return done
}

func (f *fixture) result(done <-chan response) response {
	f.t.Helper()
	select {
	case a := <-done:
		return a
	case <-time.After(longest):
		f.t.Fatal("a request has no answer")
		return response{}
	}
}

func text(format string, args ...any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) })
}
