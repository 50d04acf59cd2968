package alerts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
)

// alertStack is the deployment that one fault strikes: a Redis, an aggregator and two instances
// under a light load. Counts pass through a relay that can lose packets. The relays of counts and
// of Redis can shift the second instance's clock.
type alertStack struct {
	t          *testing.T
	name       string
	redis      *testenv.RedisServer
	aggregator *testenv.Process
	http       string // the aggregator's address
	statsd     string
	relay      *countRelay
	clock      *timeRelay // between Redis and the second instance
	// files holds three copies of the configuration: one for the aggregator and the first
	// instance, one for the second instance, one for the operator.
	files   [3]string
	metrics [2]string // addresses
	flood   *flood
}

// alertRules have a threshold so high that a stack's load makes nothing hot.
const alertRules = `rules: [{id: search, match: {route: GET /search}, by: [q], hot: 30/10s, limit: 50/s}]`

// newAlertStack starts a stack.
func newAlertStack(t *testing.T, name string) *alertStack {
	t.Helper()
	s := &alertStack{t: t, name: name, redis: testenv.Redis(t)}
	s.http = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	s.statsd = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	second := name + "-1"
	s.relay, s.clock = newCountRelay(t, s.statsd, second), newTimeRelay(t, s.redis.Addr())
	text := fmt.Sprintf("namespace: shop\naggregator: {listen: %s, redis: %s, http: %s, memory: 1MiB}\nstatsd: {addresses: [%s]}\n%s",
		s.statsd, s.redis.URL(), s.http, s.relay.Addr(), alertRules)
	for i := range s.files {
		s.files[i] = filepath.Join(t.TempDir(), "hotparam.yaml")
		testenv.WriteFile(t, s.files[i], text)
	}
	s.startAggregator()
	client, err := hotkeys.NewClient("redis://" + s.clock.Addr() + "/0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // after the instance
	s.metrics[0] = s.startInstance(s.files[0], name+"-0")
	s.metrics[1] = s.startInstance(s.files[1], second, hotparam.WithRedis(client))
	return s
}

func (s *alertStack) startAggregator() {
	s.t.Helper()
	s.aggregator = testenv.Start(s.t, exec.Command(testenv.Binary(s.t), "aggregator", "--config", s.files[0]))
	s.aggregator.WaitFor("aggregator is up")
}

// restartAggregator ends the aggregator, if it runs, and starts another one.
func (s *alertStack) restartAggregator() {
	s.t.Helper()
	s.aggregator.Kill()
	s.startAggregator()
}

// edit replaces a text by another in some of the files.
func (s *alertStack) edit(old, text string, files ...int) {
	s.t.Helper()
	for _, i := range files {
		was := testenv.ReadFile(s.t, s.files[i])
		testenv.WriteFile(s.t, s.files[i], strings.Replace(was, old, text, 1))
	}
}

// startInstance runs a program with attach, its metrics and a light load, until the test ends.
func (s *alertStack) startInstance(file, name string, more ...hotparam.Option) (metrics string) {
	s.t.Helper()
	hp, err := hotparam.Open(s.t.Context(), file, append(more, hotparam.WithName(name), hotparam.WithLogger(slog.New(slog.DiscardHandler)))...)
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

// flood sends counts of many values to the aggregator, as other programs do, until it is
// stopped.
type flood struct{ stop func() }

// startFlood repeatedly sends n counts of each of several values.
func (s *alertStack) startFlood(values, n int) {
	s.t.Helper()
	conn, err := net.Dial("udp", s.statsd)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	s.flood = &flood{stop: sync.OnceFunc(func() { cancel(); work.Wait(); conn.Close() })}
	s.t.Cleanup(s.flood.stop)
	work.Go(func() {
		for sleep(ctx, 0) {
			var packet bytes.Buffer
			for i := range values {
				fmt.Fprintf(&packet, "shop.search.hot_param.GET%%20/search?q=other%d:%d|c\n", i, n)
				if packet.Len() > 1200 || i == values-1 {
					_, _ = conn.Write(packet.Bytes()) // UDP: it may be lost
					packet.Reset()
					if !sleep(ctx, 500*time.Microsecond) { // as fast as a socket is read on a busy machine
						return
					}
				}
			}
			sleep(ctx, 4*time.Second)
		}
	})
}

// sleep reports whether ctx has not ended after the time.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

// job returns the name of the Prometheus job of the stack's instances.
func (s *alertStack) job() string { return s.name + "/shop" }

// scrape returns the stack's entry of scrape_configs.
func (s *alertStack) scrape() string {
	return fmt.Sprintf("  - {job_name: %s/aggregator, static_configs: [{targets: [%q]}]}\n  - {job_name: %s, static_configs: [{targets: [%q, %q]}]}\n",
		s.name, s.http, s.job(), s.metrics[0], s.metrics[1])
}
