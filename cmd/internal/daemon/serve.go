package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/cmd/internal/httpserve"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// pipeline turns counts into published keys. Each source has its own.
type pipeline interface {
	// Run works until ctx ends, then shuts down in the order of the data: received counts are
	// counted, and the resulting changes are published.
	Run(ctx context.Context) error
	// ready returns a short description of the state, or an error if counts do not become
	// published keys.
	ready() (string, error)
	// reload puts other rules in force. If it returns an error, the current ones stay.
	reload(rules *rules.Rules) error
	// publishes reports whether hot keys found here reach Redis, which they do not on a standby.
	publishes() bool
	// collect sends the pipeline's metrics.
	collect(figure.Samples)
	// reportTo adds the pipeline's totals of dropped and lost counts, its waiting keys and its
	// memory to a heartbeat.
	reportTo(m *published.Member)
	// alive returns an error if the pipeline is stuck, so that only a restart of the process
	// helps. It may itself block then. An unavailable server is not such an error.
	alive() error
	// where returns the address that counts come from, for the log.
	where() slog.Attr
}

// serve runs the pipeline until ctx ends. While it runs, serve reports its state over HTTP and to
// systemd.
func (a *accompanied) serve(ctx context.Context, listener net.Listener, more *admin, systemd *sdnotify.Notifier, set *settings) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return more.run(ctx) })
	group.Go(func() error {
		if err := newStatusServer(a, more, set).Serve(ctx, listener); err != nil {
			return fmt.Errorf("health and metrics: %w", err)
		}
		return nil
	})
	group.Go(func() error { return reportService(ctx, systemd, a, listener.Addr(), set.Log) })
	return group.Wait()
}

// newStatusServer returns a server that serves health, readiness and metrics to everyone, and
// more to authorized clients.
func newStatusServer(p pipeline, more *admin, set *settings) *httpserve.Server {
	server, mux := status.NewServer(statusOf(p, more.page, set))
	more.register(mux)
	return server
}

// statusOf returns the configuration of the status server. shown is nil without a page.
func statusOf(p pipeline, shown *page.Page, set *settings) status.Config {
	return status.Config{
		Log: set.Log, Build: set.Build,
		Ready: func() (string, bool) { return readyWords(p) },
		Collect: func(s figure.Samples) {
			p.collect(s)
			if shown != nil {
				figure.Collect(s, page.Figures, shown.Stats())
			}
		},
	}
}

// Reasons why a pipeline does not publish.
var (
	errFenced  = errors.New("another aggregator publishes for this namespace")
	errNoRedis = errors.New("cannot publish to Redis")
)
