// Command api is a small shop API guarded by hotparam: what README shows, as a
// whole program.
//
//	redis-server &
//	go run ./cmd/hotparam aggregator --config deploy/hotparam.yaml &
//	go run ./examples/api --config deploy/hotparam.yaml
//	curl -i 'localhost:8080/search?q=phone'
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

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to serve on")
	rules := flag.String("config", "deploy/hotparam.yaml", "rules `file`, the same as the aggregator's")
	flag.Parse()
	logging.Disable() // the Redis client's own, a line for each try: the watcher tells once
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
		// Where a rule counts bytes or milliseconds the guard measures them; of
		// units a handler says with middleware.AddCost how many it took.
		_, _ = w.Write(make([]byte, 1<<20)) // the client may have gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })

	// Attach hotparam: the rules, a collector that counts, a guard that decides,
	// and a watcher that tells the guard what is hot.
	file, err := config.Load(rulesFile)
	if err != nil {
		return err
	}
	daemon := file.Aggregator.WithDefaults()
	sink, err := collector.NewStatsD(collector.StatsDConfig{Rules: file.Rules, Addr: daemon.Listen})
	if err != nil {
		return err
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: file.Rules, Log: slog.Default()})
	if err != nil {
		return err
	}
	guard, err := middleware.New(file.Rules, counts)
	if err != nil {
		return err
	}
	client, err := hotkeys.NewClient(daemon.Redis)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // it only read
	watch := hotkeys.WatcherConfig{Namespace: file.Rules.Namespace, Logger: slog.Default()}
	watcher, err := hotkeys.NewWatcher(client, watch, guard.HotSet())
	if err != nil {
		return err
	}

	// What this instance sees as hot, for curious people.
	outer := http.NewServeMux()
	outer.Handle("/", guard.Handler(mux))
	outer.HandleFunc("GET /debug/hot", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have gone
			"hot": guard.HotKeys(), "guard": guard.Stats(), "collector": counts.Stats(), "watcher": watcher.Stats(),
		})
	})

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return counts.Run(ctx) })
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error { return serve(ctx, listen, outer) })
	return group.Wait()
}

func serve(ctx context.Context, addr string, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("api is up", "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
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
