// Instance is an API of the chaos run: a process of its own that hotparam guards as in
// examples/api. Over HTTP it can be reloaded and inspected. It ends when its standard input does,
// so it never outlives the harness.
//
//	GET  /chaos/control   answers at once, without the guard: how busy the machine is
//	POST /chaos/reload    puts the rules of the file in force and returns once they are
//	GET  /chaos/state     runtime figures, after a garbage collection with ?gc=1
//	GET  /...             anything else is a guarded request
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // for limit.zone on systems without time zones

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
)

func main() {
	var o settings
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to serve on")
	flag.StringVar(&o.file, "config", "", "rules `file`")
	flag.StringVar(&o.name, "name", "instance", "`name` of this instance")
	flag.DurationVar(&o.timeout, "redis-timeout", limiter.DefaultTimeout, "how long a limit waits for Redis")
	flag.Parse()
	logging.Disable() // the Redis client logs a line for every try
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the harness has ended
		cancel()
	}()
	err := run(ctx, o)
	stop()
	if err != nil {
		slog.Error("instance", "err", err)
		os.Exit(1)
	}
}

type settings struct {
	listen, file, name string
	timeout            time.Duration
}

// instance holds what requests and inspections of the process need.
type instance struct {
	file      string
	guard     *middleware.Guard
	counts    *collector.Collector
	watcher   *hotkeys.Watcher
	semaphore *redislimiter.Semaphore
	members   *redislimiter.Members
	sink      *kafkasink.Sink // nil without Kafka
}

func run(ctx context.Context, o settings) error {
	file, err := config.Load(o.file)
	if err != nil {
		return err
	}
	sink, err := newSink(file)
	if err != nil {
		return err
	}
	in := &instance{file: o.file}
	if in.counts, err = collector.New(collector.Config{Sink: sink, Rules: file.Rules, Log: slog.Default()}); err != nil {
		return err
	}
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(file.Aggregator.WithDefaults().Redis))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // everything that matters was answered
	namespace, log := file.Rules.Namespace, slog.Default()
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: namespace, Timeout: o.timeout})
	if err != nil {
		return err
	}
	in.semaphore, err = redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: namespace, Name: o.name, Logger: log})
	if err != nil {
		return err
	}
	var instances atomic.Int64
	in.members, err = redislimiter.NewMembers(client, redislimiter.MembersConfig{
		Namespace: namespace, Name: o.name, Logger: log, OnChange: func(n int) {
			instances.Store(int64(n))
			in.guard.SetInstances(n)
		},
	})
	if err != nil {
		return err
	}
	backend, err := limiter.NewFailover(store, limiter.FailoverConfig{
		Timeout: o.timeout, Instances: func() int { return int(max(1, instances.Load())) }, Logger: log,
	})
	if err != nil {
		return err
	}
	in.guard, err = middleware.New(file.Rules, in.counts,
		middleware.WithBackend(backend), middleware.WithSemaphore(in.semaphore), middleware.WithLog(log))
	if err != nil {
		return err
	}
	in.watcher, err = hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: namespace, Logger: log}, in.guard.HotSet())
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if kafka, ok := sink.(*kafkasink.Sink); ok {
		in.sink = kafka
		group.Go(func() error {
			if err := kafka.Check(ctx); err != nil {
				slog.Warn("counts do not arrive", "err", err)
			}
			return nil
		})
	}
	group.Go(func() error { return in.counts.Run(ctx) })
	group.Go(func() error { return in.watcher.Run(ctx) })
	group.Go(func() error { return in.guard.Run(ctx) })
	group.Go(func() error { return in.semaphore.Run(ctx) })
	group.Go(func() error { return in.members.Run(ctx) })
	group.Go(func() error { return serve(ctx, o.listen, in.handler()) })
	return group.Wait()
}

func (in *instance) handler() http.Handler {
	api := http.NewServeMux()
	for _, route := range []string{"search", "bucket", "log", "solo", "local", "wait"} {
		api.HandleFunc("GET /"+route, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	}
	mux := http.NewServeMux()
	mux.Handle("/", in.guard.Handler(api))
	mux.HandleFunc("GET /chaos/control", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("POST /chaos/reload", in.reload)
	mux.HandleFunc("GET /chaos/state", in.state)
	return mux
}

func (in *instance) reload(w http.ResponseWriter, _ *http.Request) {
	file, err := config.Load(in.file)
	if err == nil {
		err = in.guard.Reload(file.Rules)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, file.Rules.Version)
}

func (in *instance) state(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("gc") != "" {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	w.Header().Set("Content-Type", "application/json")
	state := map[string]any{
		"goroutines": runtime.NumGoroutine(), "heap": m.HeapAlloc,
		"guard": in.guard.Stats(), "backend": in.guard.BackendStats(), "collector": in.counts.Stats(),
		"watcher": in.watcher.Stats(), "members": in.members.Stats(), "hot": len(in.guard.HotKeys()),
	}
	if in.sink != nil {
		state["sink"] = in.sink.Stats()
	}
	_ = json.NewEncoder(w).Encode(state) // the harness may be gone
}

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
		return kafkasink.New(kafkasink.Config{
			Rules: file.Rules, Connection: k.Connection, Topic: k.Topic, Acks: acks, Log: slog.Default(), Key: key,
		})
	}
	s := file.StatsD.WithDefaults(file.Aggregator)
	spread, err := statsdsink.ParseSpread(s.Spread)
	if err != nil {
		return nil, err
	}
	return statsdsink.New(statsdsink.Config{Rules: file.Rules, Addrs: s.Addresses, Spread: spread, Key: key})
}

func serve(ctx context.Context, addr string, handler http.Handler) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("instance is up", "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
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
