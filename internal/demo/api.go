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
	server   *httpserve.Server
	listener net.Listener
	counts   *collector.Collector
	guard    *middleware.Guard
	watcher  *hotkeys.Watcher
}

// newAPI returns instance n of the API, which listens but does not serve yet.
func (d *Demo) newAPI(ctx context.Context, n int, ruleset *rules.Rules, database *database, log *slog.Logger) (_ *api, err error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &api{listener: listener}
	var sink collector.Sink
	defer func() {
		if err == nil {
			return
		}
		_ = listener.Close() // the error that led here is the one to report
		if sink != nil {
			_ = sink.Close()
		}
	}()
	sink, err = d.transport.sink(ctx, fmt.Sprintf("api-%d", n+1))
	if err != nil {
		return nil, err
	}
	if a.counts, err = collector.New(collector.Config{Sink: sink, Rules: ruleset, Log: log}); err != nil {
		return nil, err
	}
	a.guard, err = middleware.New(ruleset, a.counts,
		middleware.WithOnSwap(func(_ string, hot []rules.Hot) { d.exact.inForce(n, hot, time.Now()) }),
		middleware.WithLimited(func(w http.ResponseWriter, r *http.Request, decision rules.Decision) {
			d.exact.refused(keyOf(r))
			middleware.Refuse(w, r, decision)
		}),
	)
	if err != nil {
		return nil, err
	}
	client, err := d.redis.client()
	if err != nil {
		return nil, err
	}
	a.watcher, err = hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: Namespace, Timeout: redisTimeout, Logger: log}, a.guard.HotSet())
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
	a.server = httpserve.New(httpserve.Config{Handler: mux, MaxConnections: maxConnections, Grace: lastAnswers, Log: log})
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
	err := a.server.Serve(ctx, a.listener)
	stop()
	return errors.Join(err, parts.Wait())
}

// lastAnswers is the time that requests in flight have to end. maxConnections bounds the number
// of connections, including those of the demo's user.
const (
	lastAnswers    = time.Second
	maxConnections = 1024
)
