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

	"github.com/hotparam/hotparam/cmd/internal/httpserve"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/sharing"
	"github.com/hotparam/hotparam/rules"
)

// api is one instance of the API, with the middleware attached as a user attaches it.
type api struct {
	log      *slog.Logger
	listener net.Listener
	handler  http.Handler // set before run

	// Of a guarded instance:
	counts  *collector.Collector
	guard   *middleware.Guard
	watcher *hotkeys.Watcher
	answers *sharing.Answers // nil without on_hot
}

// newAPI returns an instance without limits, which listens but does not serve yet.
func newAPI(ctx context.Context, database *database, log *slog.Logger) (*api, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(Route, filings(database))
	return &api{log: log, listener: listener, handler: mux}, nil
}

// filings returns a handler that answers from a database.
func filings(d *database) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.query(r.Context()) {
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "filings of company %s\n", r.FormValue("cik"))
	})
}

// attach guards the instance. It closes the sink if it fails; otherwise the instance does, when it
// has run.
func (d *Demo) attach(a *api, sink collector.Sink, ruleset *rules.Rules, opts ...middleware.Option) (err error) {
	defer func() {
		if err != nil {
			_ = sink.Close() // the error that led here is the one to report
			_ = a.listener.Close()
		}
	}()
	if a.counts, err = collector.New(collector.Config{Sink: sink, Rules: ruleset, Log: a.log}); err != nil {
		return err
	}
	if a.guard, err = middleware.New(ruleset, a.counts, opts...); err != nil {
		return err
	}
	client, err := d.redis.client()
	if err != nil {
		return err
	}
	a.watcher, err = hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: Namespace, Timeout: redisTimeout, Logger: a.log}, a.guard.HotSet())
	return err
}

// newLimitedAPI returns instance n of the API with limits.
func (d *Demo) newLimitedAPI(ctx context.Context, n int, ruleset *rules.Rules, database *database, log *slog.Logger) (*api, error) {
	sink, err := d.transport.sink(ctx, fmt.Sprintf("api-%d", n+1))
	if err != nil {
		return nil, err
	}
	a, err := newAPI(ctx, database, log)
	if err != nil {
		return nil, errors.Join(err, sink.Close())
	}
	err = d.attach(a, sink, ruleset,
		middleware.WithOnSwap(func(_ string, hot []middleware.HotKey) { d.exact.inForce(n, hot, time.Now()) }),
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

// onHot is the on_hot of the rule of instances that share answers.
var onHot = rules.OnHot{Coalesce: true, Cache: 500 * time.Millisecond, Stale: 2 * time.Second}

// newSharingAPI returns an instance that also answers identical requests of a hot key once and from
// memory, by on_hot. It follows the hot keys that the instances with limits have made hot. Its
// requests are not counted: they are the same ones.
func (d *Demo) newSharingAPI(ctx context.Context, ruleset *rules.Rules, database *database, log *slog.Logger) (*api, error) {
	shared := *ruleset
	shared.Rules = []rules.Rule{ruleset.Rules[0]}
	shared.Rules[0].OnHot = &onHot
	a, err := newAPI(ctx, database, log)
	if err != nil {
		return nil, err
	}
	a.answers = sharing.New(log)
	if err := d.attach(a, uncounted{}, &shared, middleware.WithoutLocal(), middleware.WithSharer(a.answers)); err != nil {
		return nil, err
	}
	a.answers.Adopt(&shared)
	mux := http.NewServeMux()
	mux.Handle(Route, a.guard.Handler(filings(database)))
	a.handler = mux
	return a, nil
}

// uncounted is a sink that sends nothing.
type uncounted struct{ collector.CountsOnly }

func (uncounted) Send(context.Context, collector.Flush, []collector.Count) collector.Sent {
	return collector.Sent{}
}
func (uncounted) Fit(text []byte) []byte { return text }
func (uncounted) Close() error           { return nil }

func (a *api) url() string { return "http://" + a.listener.Addr().String() }

// run serves until ctx ends, and then sends the remaining counts.
func (a *api) run(ctx context.Context) error {
	counting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts errgroup.Group
	if a.guard != nil {
		parts.Go(func() error { return a.counts.Run(counting) })
		parts.Go(func() error { return a.watcher.Run(counting) })
	}
	server := httpserve.New(httpserve.Config{Handler: a.handler, MaxConnections: maxConnections, Grace: lastAnswers, Log: a.log})
	err := server.Serve(ctx, a.listener)
	stop()
	err = errors.Join(err, parts.Wait())
	if a.answers == nil {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	return errors.Join(err, a.answers.Close(last))
}

// lastAnswers is the time that requests in flight have to end. maxConnections bounds the number
// of connections, including those of the demo's user.
const (
	lastAnswers    = time.Second
	maxConnections = 1024
)
