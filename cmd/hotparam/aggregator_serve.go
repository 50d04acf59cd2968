package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// pipeline turns counts into published keys. There is one for each source.
type pipeline interface {
	// Run works until ctx ends, then ends in the order of the data: what has
	// arrived is counted, and what that changes is published.
	Run(ctx context.Context) error
	// ready tells in a few words that counts become published keys, or why
	// they do not.
	ready() (string, error)
	// collect gives the pipeline's metrics.
	collect(samples)
	// where is where counts come from, for the log.
	where() slog.Attr
}

// serve runs a pipeline until ctx ends, and tells about it over HTTP meanwhile.
func serve(ctx context.Context, p pipeline, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(ctx) })
	group.Go(func() error { return serveHTTP(ctx, listener, newStatusHandler(p)) })
	return group.Wait()
}

func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(limit) // a scrape that hangs does not hold us up
	})
	err := server.Serve(listener)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("health and metrics: %w", err)
}

// newStatusHandler serves health, readiness and metrics.
func newStatusHandler(p pipeline) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics(p))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		words, err := p.ready()
		if err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, words)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// What keeps a pipeline from publishing.
var (
	errFenced  = errors.New("another aggregator publishes for this namespace")
	errNoRedis = errors.New("cannot publish to Redis")
)
