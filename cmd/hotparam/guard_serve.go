package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/httpserve"
	"github.com/hotparam/hotparam/internal/page"
)

// guardStatus is the state that /-/ready reports.
type guardStatus struct{ draining atomic.Bool }

// run serves until ctx ends or a door fails. Then the doors drain, each within a bounded time, and
// everything they need ends after them.
func (g *guardService) run(ctx context.Context) error {
	rest, endRest := context.WithCancel(context.WithoutCancel(ctx))
	defer endRest()
	var helpers errgroup.Group
	for _, d := range g.doors {
		helpers.Go(func() error { return d.tickets.Run(rest) })
	}
	doors, ctx := errgroup.WithContext(ctx)
	for _, d := range g.doors {
		doors.Go(func() error {
			if err := d.serve(ctx, d.listener); err != nil {
				return fmt.Errorf("door %s: %w", d.name, err)
			}
			if ctx.Err() == nil {
				return fmt.Errorf("door %s has ended", d.name)
			}
			return nil
		})
	}
	statusFailed := make(chan error, 1)
	helpers.Go(func() error {
		err := g.newStatusServer().Serve(rest, g.listener)
		statusFailed <- err
		return nil
	})
	doors.Go(func() error {
		select {
		case err := <-statusFailed:
			return fmt.Errorf("health and metrics: %w", err)
		case <-ctx.Done():
			return nil
		}
	})
	doors.Go(func() error { return g.hangups.follow(ctx, g.reload) })
	doors.Go(func() error { return g.reportService(ctx) })
	stop := context.AfterFunc(ctx, func() { g.status.draining.Store(true) })
	defer stop()
	err := doors.Wait()
	g.settings.log.Info("guard has drained")
	endRest()
	_ = helpers.Wait() // they return nil
	return err
}

// reload reads the file again.
func (g *guardService) reload() {
	g.systemd.Reloading()
	if err := g.hp.Reload(); err != nil {
		g.settings.log.Error("the rules stay as they are", "err", err)
	}
	g.systemd.Ready(g.statusWords())
}

// reportService reports the guard's state to systemd, as the aggregator's reportService does.
func (g *guardService) reportService(ctx context.Context) error {
	g.systemd.Ready(g.statusWords())
	g.systemd.Watch(ctx, func(ctx context.Context) (string, error) {
		return g.statusWords(), askHealth(ctx, g.listener.Addr())
	}, func(err error) {
		g.settings.log.Error("this process is about to be restarted by its watchdog", "err", err)
	})
	<-ctx.Done()
	g.systemd.Stopping()
	return nil
}

// statusWords returns the guard's state in one line. The guard is ready with or without Redis.
func (g *guardService) statusWords() string {
	s := g.hp.Stats()
	words := "ready, following the hot keys"
	switch {
	case g.settings.file.Aggregator.Source == config.SourceNone:
		words = "ready, with limits alone (source: none)"
	case !s.Watcher.Connected:
		words = "ready, but Redis is away: hot keys stay as they were, and limits with scope: exact do as they say"
	}
	if s.Rules.Problem != "" {
		words += "; the file cannot be used, and the last good one is in force: " + s.Rules.Problem
	}
	if changed := g.settings.restartFor(); len(changed) > 0 {
		words += "; of section guard a restart would change " + strings.Join(changed, ", ")
	}
	return words
}

// newStatusServer returns the server of health, readiness and metrics, and, on a loopback address,
// of profiles.
func (g *guardService) newStatusServer() *httpserve.Server {
	mux := http.NewServeMux()
	server := httpserve.New(httpserve.Config{Handler: mux, Health: healthPath, Log: g.settings.log})
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.hp, &guardMetrics{doors: g.doors, settings: g.settings, server: server},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if g.status.draining.Load() {
			http.Error(w, "not ready: draining", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, g.statusWords())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if g.settings.guard.Pprof {
		// It has no token, so it accepts only programs of this machine, and no requests from web
		// pages.
		guard := page.NewGuard(page.GuardConfig{Listener: g.listener.Addr(), Log: g.settings.log})
		mux.Handle("GET "+pprofPath, guard.Protect(pprofHandler()))
	}
	return server
}
