package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/httpserve"
	"github.com/hotparam/hotparam/internal/page"
	"github.com/hotparam/hotparam/internal/sdnotify"
	"github.com/hotparam/hotparam/internal/status"
	"github.com/hotparam/hotparam/rules"
)

// pipeline turns counts into published keys. There is one for each source.
type pipeline interface {
	// Run works until ctx ends, then ends in the order of the data: what has
	// arrived is counted, and what that changes is published.
	Run(ctx context.Context) error
	// ready returns in a few words that counts become published keys, or the error why
	// they do not.
	ready() (string, error)
	// reload puts other rules in force. If it returns an error, the present ones stay.
	reload(rules *rules.Rules) error
	// publishes reports whether what is found here reaches Redis: not on a standby.
	publishes() bool
	// collect gives the pipeline's metrics.
	collect(figure.Samples)
	// reportTo adds to a heartbeat what the pipeline drops and loses, as totals, and what it
	// holds.
	reportTo(m *rules.Member)
	// alive returns an error if the pipeline has stopped working, for which nothing but
	// another process helps. It may block if it has. Servers that are away are no such error.
	alive() error
	// where is where counts come from, for the log.
	where() slog.Attr
}

// serve runs a pipeline until ctx ends, and reports its state over HTTP and to systemd
// meanwhile.
func serve(ctx context.Context, p pipeline, listener net.Listener, more *admin, systemd *sdnotify.Notifier, set *settings) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(ctx) })
	group.Go(func() error { return more.run(ctx) })
	group.Go(func() error {
		if err := newStatusServer(p, more, set).Serve(ctx, listener); err != nil {
			return fmt.Errorf("health and metrics: %w", err)
		}
		return nil
	})
	group.Go(func() error { return reportService(ctx, systemd, p, listener.Addr(), set.log) })
	return group.Wait()
}

// newStatusServer serves health, readiness and metrics to everybody, and more to those who
// may read it.
func newStatusServer(p pipeline, more *admin, set *settings) *httpserve.Server {
	server, mux := status.NewServer(statusOf(p, more.page, set))
	more.register(mux)
	return server
}

// statusOf is what the daemon says of itself. shown is nil without a page.
func statusOf(p pipeline, shown *page.Page, set *settings) status.Config {
	return status.Config{
		Log: set.log, Build: set.build,
		Ready: func() (string, bool) { return readyWords(p) },
		Collect: func(s figure.Samples) {
			p.collect(s)
			if shown != nil {
				figure.Collect(s, pageMetrics, shown.Stats())
			}
		},
	}
}

// What keeps a pipeline from publishing.
var (
	errFenced  = errors.New("another aggregator publishes for this namespace")
	errNoRedis = errors.New("cannot publish to Redis")
)
