package status

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotparam/hotparam/cmd/internal/httpserve"
	"github.com/hotparam/hotparam/internal/figure"
)

// Config configures the server of a process.
type Config struct {
	Log   *slog.Logger
	Build Build
	// Ready returns the state of the process in a few words, and whether it does its work.
	Ready func() (words string, ready bool)
	// Collect adds the metrics of the process, other than those of its server, its build and Go.
	Collect func(figure.Samples)
	// Others are further metrics.
	Others []prometheus.Collector
	TLS    *tls.Config // nil means plain HTTP
}

// healthPath is served as long as the process serves at all.
const healthPath = "/-/healthy"

// NewServer returns the server of health, readiness and metrics, without access control, and its
// mux.
func NewServer(c Config) (*httpserve.Server, *http.ServeMux) {
	mux := http.NewServeMux()
	server := httpserve.New(httpserve.Config{Handler: mux, Health: healthPath, TLS: c.TLS, Log: c.Log.With("server", "health and metrics")})
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		words, ready := c.Ready()
		if !ready {
			http.Error(w, words, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, words)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(Registry(c, server), promhttp.HandlerOpts{}))
	return server, mux
}

// Registry returns the metrics of a process with this server.
func Registry(c Config, server *httpserve.Server) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(append([]prometheus.Collector{
		&process{c, server}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}, c.Others...)...)
	return registry
}

// process collects the metrics at each scrape.
type process struct {
	Config
	server *httpserve.Server
}

// Describe implements prometheus.Collector.
func (p *process) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(p, ch) }

// Collect implements prometheus.Collector.
func (p *process) Collect(ch chan<- prometheus.Metric) {
	p.Config.Collect(ch)
	figure.Collect(ch, HTTPFigures, p.server.Stats())
	figure.Collect(ch, BuildFigures, p.Build)
}

// HTTPFigures are the metrics of the server that serves them.
var HTTPFigures = []figure.Figure[httpserve.Stats]{
	figure.Gauge("http_connections", "Connections to this address that are open.",
		func(h *httpserve.Stats) float64 { return float64(h.Connections) }),
	figure.Counter("http_evicted_connections_total", "Connections without a request that made room for others.",
		func(h *httpserve.Stats) int64 { return h.Displaced }).
		Explain("connections without a request that were closed, because there were 128 (or a quarter of the file " +
			"limit) or no descriptors were left"),
	figure.Counter("http_refused_connections_total", "Connections that were closed at once, as all had requests.",
		func(h *httpserve.Stats) int64 { return h.Full }).
		Explain("connections that were closed at once, as all had requests; 16 more than 128 are accepted for " +
			"`/-/healthy`"),
	figure.Counter("http_accept_failures_total", "Times that there was no file descriptor for a connection.",
		func(h *httpserve.Stats) int64 { return h.Starved }).
		Explain("times that there was no file descriptor for a connection; four are reserved for `/-/healthy`"),
}

// WithAnotherAddress adds to the error of a listener whose address is in use where to choose
// another one.
func WithAnotherAddress(err error, where string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w by another program: choose another address by %s", err, where)
	}
	return err
}

// AskHealth queries the process's own server, like any other client.
func AskHealth(ctx context.Context, server net.Addr) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(server)+healthPath, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true // a connection kept open would take a place
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("its own health: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("its own health: %s", response.Status)
	}
	return nil
}

// reachable returns the address by which a process reaches its own listener, which may listen on
// all interfaces.
func reachable(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	switch {
	case !ok || !tcp.IP.IsUnspecified():
		return addr.String()
	case tcp.IP.To4() != nil:
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return fmt.Sprintf("[::1]:%d", tcp.Port)
}

// StuckAfter is how long the counting goroutines may go without progress before they count as
// stuck. They report progress each second, whether counts arrive or not.
const StuckAfter = 10 * time.Second
