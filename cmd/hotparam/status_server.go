package main

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotparam/hotparam/internal/httpserve"
)

// newPlainStatusServer returns the server of health, readiness and metrics of a guard or a
// follower, to everybody, and its mux. Metrics are those of the process and of metrics.
func newPlainStatusServer(log *slog.Logger, ready func() (words string, ready bool), metrics func(*httpserve.Server) []prometheus.Collector) (*httpserve.Server, *http.ServeMux) {
	mux := http.NewServeMux()
	server := httpserve.New(httpserve.Config{Handler: mux, Health: healthPath, Log: log})
	registry := prometheus.NewRegistry()
	registry.MustRegister(append(metrics(server), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))...)
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		words, ready := ready()
		if !ready {
			http.Error(w, words, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, words)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return server, mux
}
