package hotparam

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// longest is how long a test waits for an event that should come soon.
const longest = 20 * time.Second

const (
	searchRule  = `{id: search-terms, match: {route: "GET /search"}, by: [q], hot: 200/s, limit: {rate: 1/1m, burst: 2}}`
	productRule = `{id: products, match: {route: "GET /products"}, limit: {rate: 1/1h, burst: %d}}`
)

// shop returns the text of a file with these rules.
func shop(redisURL, statsd string, rules ...string) string {
	return fmt.Sprintf("namespace: shop\naggregator: {redis: %q}\nstatsd: {addresses: [%q]}\nrules:\n  - %s\n",
		redisURL, statsd, strings.Join(rules, "\n  - "))
}

// nowhere returns an address where nothing listens.
func nowhere(t *testing.T) string { return fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)) }

// fixture is an open Hotparam with its surroundings.
type fixture struct {
	*Hotparam
	t       *testing.T
	path    string
	log     *testenv.LogBuffer
	handler http.Handler
}

// open opens a file with this text and closes it when the test ends.
func open(t *testing.T, text string, opts ...Option) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "hotparam.yaml"), log: new(testenv.LogBuffer)}
	f.write(text)
	h, err := Open(t.Context(), f.path, append([]Option{WithLogger(slog.New(slog.NewTextHandler(f.log, nil)))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	f.Hotparam = h
	f.handler = h.Handler(testMux())
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

func testMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, path := range []string{"/search", "/products", "/healthz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	}
	return mux
}

func (f *fixture) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// get returns the status of a request.
func (f *fixture) get(url string) int {
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, http.NoBody))
	return w.Code
}

// passes returns how many of n requests pass.
func (f *fixture) passes(n int, url string) (passed int) {
	for range n {
		if f.get(url) == http.StatusOK {
			passed++
		}
	}
	return passed
}

// unanswered returns how many calls to Redis had no answer in time. Each may have taken a permit for
// a request that did not pass, or let one pass without.
func (f *fixture) unanswered() int {
	s := f.Stats()
	return int(s.Backend.TimedOut + s.Fleet.Failures)
}

// await waits until a condition holds.
func (f *fixture) await(what string, condition func() bool) {
	f.t.Helper()
	testenv.Eventually(f.t, what, condition, f.log)
}

func (f *fixture) awaitLog(text string) {
	f.t.Helper()
	f.await("log: "+text, func() bool { return strings.Contains(f.log.String(), text) })
}

// logged returns how many lines of the log contain a text.
func (f *fixture) logged(text string) (n int) {
	for _, line := range f.log.Lines() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// publish publishes hot keys of the rule search-terms until the test ends, or stop is called.
func publish(t *testing.T, redisURL, namespace string, instances []published.Instance, texts ...string) (stop func()) {
	t.Helper()
	client, err := hotkeys.NewClient(testenv.Patient(t, redisURL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	p, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: namespace, Timeout: longest})
	if err != nil {
		t.Fatal(err)
	}
	var hot []published.Hot
	for _, text := range texts {
		hot = append(hot, published.Hot{
			Key: rules.Key{Rule: "search-terms", Text: text}, Low: 400, High: 400, Rate: 400, Ratio: 2,
			Since: time.Now(), Limit: rules.Rate{N: 1, Per: time.Minute}, Burst: 2, Mode: rules.ModeLimit,
		})
	}
	p.Publish(published.Change{Hot: hot})
	p.Instances(instances)
	return testenv.Running(t, p.Run)
}

// receiver is a UDP socket that receives a sink's packets.
type receiver struct {
	conn net.PacketConn
	log  testenv.LogBuffer
}

func receive(t *testing.T) *receiver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{conn: conn}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = r.log.Write(append(buf[:n:n], '\n'))
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return r
}

func (r *receiver) addr() string { return r.conn.LocalAddr().String() }
