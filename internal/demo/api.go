package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/httpserve"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// api is one instance of the API, with the middleware attached as a user attaches it.
type api struct {
	handler  http.Handler // set before run
	log      *slog.Logger
	listener net.Listener
	counts   *collector.Collector
	guard    *middleware.Guard
	watcher  *hotkeys.Watcher
}

// newInstance returns a guarded instance, which listens but does not serve yet. It closes the sink
// when it has run, or if it cannot be made.
func (d *Demo) newInstance(ctx context.Context, sink collector.Sink, ruleset *rules.Rules, log *slog.Logger, opts ...middleware.Option) (_ *api, err error) {
	a := &api{log: log}
	defer func() {
		if err == nil {
			return
		}
		_ = sink.Close() // the error that led here is the one to report
		if a.listener != nil {
			_ = a.listener.Close()
		}
	}()
	var lc net.ListenConfig
	if a.listener, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if a.counts, err = collector.New(collector.Config{Sink: sink, Rules: ruleset, Log: log}); err != nil {
		return nil, err
	}
	if a.guard, err = middleware.New(ruleset, a.counts, opts...); err != nil {
		return nil, err
	}
	client, err := d.redis.client()
	if err != nil {
		return nil, err
	}
	a.watcher, err = hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: Namespace, Timeout: redisTimeout, Logger: log}, a.guard.HotSet())
	return a, err
}

// newAPI returns instance n of the API with limits.
func (d *Demo) newAPI(ctx context.Context, n int, ruleset *rules.Rules, database *database, log *slog.Logger) (*api, error) {
	sink, err := d.transport.sink(ctx, fmt.Sprintf("api-%d", n+1))
	if err != nil {
		return nil, err
	}
	a, err := d.newInstance(ctx, sink, ruleset, log,
		middleware.WithOnSwap(func(_ string, hot []rules.Hot) { d.exact.inForce(n, hot, time.Now()) }),
		middleware.WithLimited(func(w http.ResponseWriter, r *http.Request, decision rules.Decision) {
			d.exact.refused(keyOf(r))
			middleware.Refuse(w, r, decision)
		}),
	)
	if err != nil {
		return nil, err
	}
	answers := filings(database)
	guarded := a.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.exact.passed()
		answers.ServeHTTP(w, r)
	}))
	mux := http.NewServeMux()
	mux.HandleFunc(Route, func(w http.ResponseWriter, r *http.Request) {
		if key := keyOf(r); key != "" {
			d.exact.arrived(key, time.Now())
		}
		guarded.ServeHTTP(w, r)
	})
	a.handler = mux
	return a, nil
}

// keyOf returns the text of the key of a request under the demo's rule, or "" if it has none. It
// is computed independently of the middleware.
func keyOf(r *http.Request) string {
	cik := r.URL.Query()["cik"]
	if len(cik) == 0 {
		return ""
	}
	params := make([]rules.Param, len(cik))
	for i, v := range cik {
		params[i] = rules.Param{Name: "cik", Value: v}
	}
	return rules.Text(Route, params...)
}

func (a *api) url() string { return "http://" + a.listener.Addr().String() }

// run serves until ctx ends, and then sends the remaining counts.
func (a *api) run(ctx context.Context) error {
	counting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts errgroup.Group
	parts.Go(func() error { return a.counts.Run(counting) })
	parts.Go(func() error { return a.watcher.Run(counting) })
	server := httpserve.New(httpserve.Config{Handler: a.handler, MaxConnections: maxConnections, Grace: lastAnswers, Log: a.log})
	err := server.Serve(ctx, a.listener)
	stop()
	return errors.Join(err, parts.Wait())
}

// lastAnswers is the time that requests in flight have to end. maxConnections bounds the number
// of connections, including those of the demo's user.
const (
	lastAnswers    = time.Second
	maxConnections = 1024
)
