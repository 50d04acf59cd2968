// Command api is a small shop API guarded by hotparam: what README shows, as a
// whole program.
//
//	redis-server &
//	go run ./cmd/hotparam aggregator --config deploy/hotparam.yaml &
//	go run ./examples/api --config deploy/hotparam.yaml
//	curl -i 'localhost:8080/search?q=phone'
//
// Counts travel by StatsD, or by Kafka where the file says "source: kafka"; with
// "source: graphite" they go to a StatsD of the original make.
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
	_ "time/tzdata" // for limit.zone, where the system has none

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/wire"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "`address` to serve on")
	rules := flag.String("config", "deploy/hotparam.yaml", "rules `file`, the same as the aggregator's")
	flag.Parse()
	logging.Disable() // the Redis client's own, a line for each try: the watcher logs once
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
		// units a handler reports with middleware.AddCost how many it took.
		_, _ = w.Write(make([]byte, 1<<20)) // the client may have gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })

	// Attach hotparam: the rules, a collector that counts, a guard that decides,
	// and a watcher that passes the hot keys to the guard.
	file, err := config.Load(rulesFile)
	if err != nil {
		return err
	}
	sink, err := newSink(file)
	if err != nil {
		return err
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: file.Rules, Log: slog.Default()})
	if err != nil {
		return err
	}
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(file.Aggregator.WithDefaults().Redis))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // what matters was answered
	shared, err := newShared(client, file.Rules)
	if err != nil {
		return err
	}
	guard, err := middleware.New(file.Rules, counts, shared.options()...)
	if err != nil {
		return err
	}
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
		state := map[string]any{
			"hot": guard.HotKeys(), "guard": guard.Stats(), "backend": guard.BackendStats(), "collector": counts.Stats(), "watcher": watcher.Stats(),
			"members": shared.members.Stats(),
		}
		if kafka, ok := sink.(*kafkasink.Sink); ok {
			state["sink"] = kafka.Stats()
		}
		_ = json.NewEncoder(w).Encode(state) // the client may have gone
	})

	group, ctx := errgroup.WithContext(ctx)
	if kafka, ok := sink.(*kafkasink.Sink); ok {
		group.Go(func() error { // no request waits for it
			if err := kafka.Check(ctx); err != nil {
				slog.Warn("counts do not arrive", "err", err)
			}
			return nil
		})
	}
	group.Go(func() error { return counts.Run(ctx) })
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error { return guard.Run(ctx) })
	group.Go(func() error { return reload(ctx, rulesFile, guard, shared) })
	group.Go(func() error { return shared.run(ctx, guard) })
	group.Go(func() error { return serve(ctx, listen, outer) })
	return group.Wait()
}

// reload puts the rules of the file in force whenever the process gets a SIGHUP; if they
// are bad, or change what a restart is needed for, the present ones stay.
func reload(ctx context.Context, rulesFile string, guard *middleware.Guard, shared *shared) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
		}
		file, err := config.Load(rulesFile)
		if err == nil && !shared.needed && isNeeded(file.Rules) {
			err = errors.New("the first limit with scope: share or exact takes a restart")
		}
		if err == nil {
			err = guard.Reload(file.Rules)
		}
		if err != nil {
			slog.Error("the rules stay as they are", "err", err)
			continue
		}
		slog.Info("rules are in force", "version", file.Rules.Version)
	}
}

// newSink sends counts the way that the aggregator of the same file takes them.
func newSink(file *config.File) (collector.Sink, error) {
	key, err := file.Aggregator.SigningKey()
	if err != nil {
		return nil, err
	}
	if file.Aggregator.Source == config.SourceKafka {
		k := file.Kafka.WithDefaults()
		acks, err := kafkasink.ParseAcks(k.Acks)
		if err != nil {
			return nil, err
		}
		compression, err := kafkasink.ParseCompression(k.Compression)
		if err != nil {
			return nil, err
		}
		return kafkasink.New(kafkasink.Config{
			Rules: file.Rules, Connection: k.Connection, Topic: k.Topic,
			Acks: acks, Idempotent: k.Idempotent, Compression: compression, Buffer: k.Buffer, Log: slog.Default(), Key: key,
		})
	}
	s := file.StatsD.WithDefaults(file.Aggregator)
	spread, err := statsdsink.ParseSpread(s.Spread)
	if err != nil {
		return nil, err
	}
	encoding, err := wire.ParseEncoding(s.Encoding)
	if err != nil {
		return nil, err
	}
	return statsdsink.New(statsdsink.Config{
		Rules: file.Rules, Addrs: s.Addresses, Spread: spread, Encoding: encoding, NoMeta: !*s.Meta, Key: key,
	})
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
