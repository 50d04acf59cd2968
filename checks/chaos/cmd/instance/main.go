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
	"syscall"
	"time"
	_ "time/tzdata" // for limit.zone on systems without time zones

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/middleware"
	_ "github.com/hotparam/hotparam/transport/kafka"
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

// run guards and serves requests until ctx ends. All is as the file says, except that limits wait
// for Redis for as long as the settings say.
func run(ctx context.Context, o settings) error {
	file, err := config.Load(o.file)
	if err != nil {
		return err
	}
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(file.Aggregator.WithDefaults().Redis))
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // everything that matters was answered
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: file.Rules.Namespace, Timeout: o.timeout})
	if err != nil {
		return err
	}
	var hp *hotparam.Hotparam
	backend, err := limiter.NewFailover(store, limiter.FailoverConfig{
		Timeout: o.timeout, Instances: func() int { return max(1, hp.Stats().Members.Count) }, Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	hp, err = hotparam.Open(ctx, o.file, hotparam.WithName(o.name), hotparam.WithRedis(client), hotparam.WithMiddleware(middleware.WithBackend(backend), middleware.WithHeaders()))
	if err != nil {
		return err
	}
	err = serve(ctx, o.listen, handler(hp))
	return errors.Join(err, hp.Close(context.WithoutCancel(ctx)))
}

func handler(hp *hotparam.Hotparam) http.Handler {
	ok := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	api := http.NewServeMux()
	for _, route := range []string{"search", "bucket", "log", "solo", "local", "wait", "fleet"} {
		api.HandleFunc("GET /"+route, ok)
	}
	api.HandleFunc("GET /items", serveItem)
	api.HandleFunc("POST /items", ok)
	mux := http.NewServeMux()
	mux.Handle("/", hp.Handler(api))
	mux.HandleFunc("GET /chaos/control", ok)
	mux.HandleFunc("POST /chaos/reload", func(w http.ResponseWriter, _ *http.Request) {
		if err := hp.Reload(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /chaos/state", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("gc") != "" {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct { // the harness may be gone
			Goroutines int
			Heap       uint64
			hotparam.Stats
		}{runtime.NumGoroutine(), m.HeapAlloc, hp.Stats()})
	})
	return mux
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
