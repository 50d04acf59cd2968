package alerts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotparam/hotparam/attach"
	"github.com/hotparam/hotparam/internal/testenv"
)

// alertStack is what one fault is tried on: a Redis, an aggregator and two instances under a
// light load, whose counts go through a relay that can lose packets and shift clocks.
type alertStack struct {
	t          *testing.T
	name       string
	redis      *testenv.RedisServer
	aggregator *testenv.Process
	http       string // of the aggregator
	statsd     string
	relay      *countRelay
	files      [2]string // the same twice: the first is the aggregator's and one instance's, the second the other's
	metrics    [2]string // addresses
}

// alertRules have such a threshold that the load of a stack makes nothing hot.
const alertRules = `rules: [{id: search, match: {route: GET /search}, by: [q], hot: 30/10s, limit: 50/s}]`

// newAlertStack starts a stack.
func newAlertStack(t *testing.T, name string) *alertStack {
	t.Helper()
	s := &alertStack{t: t, name: name, redis: testenv.Redis(t)}
	s.http = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	s.statsd = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	s.relay = newCountRelay(t, s.statsd)
	text := fmt.Sprintf("namespace: shop\naggregator: {listen: %s, redis: %s, http: %s, memory: 1MiB}\nstatsd: {addresses: [%s]}\n%s",
		s.statsd, s.redis.URL(), s.http, s.relay.addr(), alertRules)
	for i := range s.files {
		s.files[i] = filepath.Join(t.TempDir(), "hotparam.yaml")
		write(t, s.files[i], text)
	}
	s.aggregator = testenv.Start(t, exec.Command(testenv.Binary(t), "aggregator", "--config", s.files[0]))
	s.aggregator.WaitFor("aggregator is up")
	for i, file := range s.files {
		s.metrics[i] = s.startInstance(file, fmt.Sprintf("%s-%d", name, i))
	}
	return s
}

// startInstance runs a program with attach, its metrics and a light load, until the test ends.
func (s *alertStack) startInstance(file, name string) (metrics string) {
	s.t.Helper()
	hp, err := attach.Open(s.t.Context(), file, attach.WithName(name), attach.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(hp)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	handler := hp.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "found\n") }))
	ctx, stop := context.WithCancel(context.Background())
	var load sync.WaitGroup
	load.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			request := httptest.NewRequest(http.MethodGet, "/search?q=v"+strconv.Itoa(n%100), http.NoBody)
			request.Pattern = "GET /search"
			handler.ServeHTTP(httptest.NewRecorder(), request)
			time.Sleep(20 * time.Millisecond)
		}
	})
	s.t.Cleanup(func() {
		stop()
		load.Wait()
		server.Close()
		_ = hp.Close(context.Background()) // the aggregator may be gone
	})
	return server.Listener.Addr().String()
}

// sendCounts sends n counts of each of several values to the aggregator, as other programs
// do.
func (s *alertStack) sendCounts(values, n int) {
	s.t.Helper()
	conn, err := net.Dial("udp", s.statsd)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	var packet bytes.Buffer
	for i := range values {
		fmt.Fprintf(&packet, "shop.search.hot_param.GET%%20/search?q=other%d:%d|c\n", i, n)
		if packet.Len() > 1200 || i == values-1 {
			if _, err := packet.WriteTo(conn); err != nil {
				s.t.Fatal(err)
			}
			packet.Reset()
			time.Sleep(500 * time.Microsecond) // as fast as a socket is read on a busy machine

		}
	}
}

// job is the job of the stack's instances in Prometheus.
func (s *alertStack) job() string { return s.name + "/shop" }

// scrape is the stack's part of scrape_configs.
func (s *alertStack) scrape() string {
	return fmt.Sprintf("  - {job_name: %s/aggregator, static_configs: [{targets: [%q]}]}\n  - {job_name: %s, static_configs: [{targets: [%q, %q]}]}\n",
		s.name, s.http, s.job(), s.metrics[0], s.metrics[1])
}

// countRelay forwards packets of counts from an instance to an aggregator.
type countRelay struct {
	lose   atomic.Int64 // of 100 packets
	offset atomic.Int64 // added to the sender's clock, in nanoseconds
	in     net.PacketConn
}

func newCountRelay(t *testing.T, target string) *countRelay {
	t.Helper()
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Dial("udp", target)
	if err != nil {
		t.Fatal(err)
	}
	r := &countRelay{in: in}
	var work sync.WaitGroup
	work.Go(func() {
		buffer := make([]byte, 64<<10)
		for {
			n, _, err := in.ReadFrom(buffer)
			if err != nil {
				return
			}
			if rand.Int64N(100) >= r.lose.Load() {
				_, _ = out.Write(r.shift(buffer[:n])) // UDP: it may be lost
			}
		}
	})
	t.Cleanup(func() {
		in.Close()
		work.Wait()
		out.Close()
	})
	return r
}

func (r *countRelay) addr() string { return r.in.LocalAddr().String() }

// metaTimes are the sender's clock in the first line of a packet: when its counts begin, and
// when it was sent, in Unix nanoseconds.
var metaTimes = regexp.MustCompile(`,[tw]:(\d+)`)

func (r *countRelay) shift(packet []byte) []byte {
	offset := r.offset.Load()
	meta, lines, ok := bytes.Cut(packet, []byte("\n"))
	if offset == 0 || !ok {
		return packet
	}
	meta = metaTimes.ReplaceAllFunc(meta, func(field []byte) []byte {
		at, err := strconv.ParseInt(string(field[3:]), 10, 64)
		if err != nil {
			return field
		}
		return strconv.AppendInt(bytes.Clone(field[:3]), at+offset, 10)
	})
	return append(append(meta, '\n'), lines...)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
