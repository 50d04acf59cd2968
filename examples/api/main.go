// Command api is a small shop API guarded by hotparam: the example of the README as a whole
// program.
//
//	redis-server &
//	go run ./cmd/hotparam aggregator --config deploy/hotparam.yaml &
//	go run ./examples/api --config deploy/hotparam.yaml
//	curl -i 'localhost:8080/search?q=phone'
//	curl localhost:8080/metrics
//
// Counts travel by StatsD, or by Kafka if the file says "source: kafka". With
// "source: graphite" they go to an original StatsD server.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
	_ "time/tzdata" // for limit.zone, if the system has none

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/middleware"
	_ "github.com/hotparam/hotparam/transport/kafka" // for source: kafka
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to serve on")
	rules := flag.String("config", "deploy/hotparam.yaml", "rules `file`, the same as the aggregator's")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *listen, *rules)
	stop()
	if err != nil {
		slog.Error("api", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, rulesFile string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "results for %q\n", r.FormValue("q"))
	})
	mux.HandleFunc("GET /products/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "product %q\n", r.PathValue("id"))
	})
	mux.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, _ *http.Request) {
		// If a rule counts bytes or milliseconds, the guard measures them. If it counts
		// units, a handler reports them with middleware.AddCost.
		_, _ = w.Write(make([]byte, 1<<20)) // the client may have disconnected
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })

	hp, err := hotparam.Open(ctx, rulesFile, hotparam.WithSignals())
	if err != nil {
		return err
	}

	// These are outside the guard, so they are not limited: metrics, and this instance's hot keys.
	prometheus.MustRegister(hp)
	outer := http.NewServeMux()
	outer.Handle("/", hp.Handler(mux))
	outer.Handle("GET /metrics", promhttp.Handler())
	outer.HandleFunc("GET /debug/hot", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct { // the client may have disconnected
			Hot []middleware.HotKey
			hotparam.Stats
		}{hp.HotKeys(), hp.Stats()})
	})

	err = serve(ctx, listen, outer)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, hp.Close(limit)) // after the last request
}

func serve(ctx context.Context, addr string, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("api is up", "address", listener.Addr().String())
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(limit) // then the process ends anyway
	})
	err = server.Serve(listener)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
