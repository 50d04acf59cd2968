package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/cmd/internal/httpserve"
	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// Service runs a follower as a process, with its health, its metrics and its reports to systemd.
type Service struct {
	Follower *Follower
	Hangups  *status.Hangups
	Build    status.Build
	Log      *slog.Logger

	systemd  *sdnotify.Notifier
	listener net.Listener // listener of health and metrics; nil if they are not served
	ending   atomic.Bool
}

// Addr returns the address of health and metrics, or nil if they are not served.
func (f *Service) Addr() net.Addr {
	if f.listener == nil {
		return nil
	}
	return f.listener.Addr()
}

// Open opens the listener at an address, unless it is empty.
func (f *Service) Open(ctx context.Context, address string) (err error) {
	if address != "" {
		var lc net.ListenConfig
		if f.listener, err = lc.Listen(ctx, "tcp", address); err != nil {
			return fmt.Errorf("health and metrics: %w", status.WithAnotherAddress(err, "--http or HOTPARAM_HTTP"))
		}
	}
	if f.systemd, err = sdnotify.New(); err != nil && f.listener != nil {
		_ = f.listener.Close()
	}
	return err
}

// Run follows the logs until ctx or standard input ends, or health can no longer be served. The
// helper goroutines end after the follower.
func (f *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	helperCtx, endHelpers := context.WithCancel(context.WithoutCancel(ctx))
	defer endHelpers()
	var helpers errgroup.Group
	if f.listener != nil {
		helpers.Go(func() error {
			defer stop()
			if err := f.newStatusServer().Serve(helperCtx, f.listener); err != nil {
				return fmt.Errorf("health and metrics: %w", status.WithAnotherAddress(err, "--http or HOTPARAM_HTTP"))
			}
			return nil
		})
	}
	helpers.Go(func() error { return f.Hangups.Follow(helperCtx, f.reload) })
	helpers.Go(func() error { return f.reportService(helperCtx) })
	helpers.Go(func() error {
		if err := f.Follower.Check(ctx); err != nil && ctx.Err() == nil {
			f.Log.Warn("counts do not arrive", "err", err)
		}
		return nil
	})
	leaving := context.AfterFunc(ctx, f.reportStopping)
	defer leaving()
	err := f.Follower.Run(ctx)
	f.reportStopping() // standard input may have ended
	stop()
	endHelpers()
	return errors.Join(err, helpers.Wait())
}

// reportStopping reports that the process is ending in order. It may be called more than once.
func (f *Service) reportStopping() {
	if !f.ending.Swap(true) {
		f.systemd.Stopping()
	}
}

// reload reads the file again.
func (f *Service) reload() {
	f.systemd.Reloading()
	f.Follower.Reload()
	words, _ := f.status(time.Now())
	f.systemd.Ready(words)
}

// reportService reports the follower's state to systemd, like the aggregator's reportService.
func (f *Service) reportService(ctx context.Context) error {
	words, _ := f.status(time.Now())
	f.systemd.Ready(words)
	f.systemd.Watch(ctx, func(context.Context) (string, error) {
		words, _ := f.status(time.Now())
		looked := f.Follower.Stats().Looked
		if since := time.Since(looked); !looked.IsZero() && since > status.StuckAfter {
			return "", fmt.Errorf("the logs have not been read for %v", since.Round(time.Second))
		}
		return words, nil
	}, func(err error) { f.Log.Error("this process is about to be restarted by its watchdog", "err", err) })
	return nil
}

// status returns the follower's state in one line, and whether requests are counted.
func (f *Service) status(now time.Time) (words string, ready bool) {
	s := f.Follower.Stats()
	switch {
	case f.ending.Load():
		return "not ready: ending", false
	case !s.Looked.IsZero() && now.Sub(s.Looked) > status.StuckAfter:
		return fmt.Sprintf("not ready: the logs have not been read for %v", now.Sub(s.Looked).Round(time.Second)), false
	case s.Missing == int64(s.Logs):
		return "not ready: no log can be read; waiting for them", false
	}
	words = "ready, following " + hotwords.Plural(s.Logs-int(s.Missing), "log")
	if s.Missing > 0 {
		words += fmt.Sprintf(", and waiting for %d more", s.Missing)
	}
	if problem := f.Follower.Rules().Problem; problem != "" {
		words += "; the file cannot be used, and the last good one is in force: " + problem
	}
	return words, true
}

// newStatusServer returns the server of health, readiness and metrics, which has no access
// control.
func (f *Service) newStatusServer() *httpserve.Server {
	server, _ := status.NewServer(status.Config{
		Log: f.Log, Build: f.Build,
		Ready:   func() (string, bool) { return f.status(time.Now()) },
		Collect: f.Follower.Collect,
	})
	return server
}
