package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/config"
)

// Config configures a [Service]. All fields are required.
type Config struct {
	Hotparam *hotparam.Hotparam // the caller closes it after the service
	Guard    config.Guard
	Keys     Credentials
	// LimitsAlone reports whether no key can become hot because the file has no source of
	// counts.
	LimitsAlone bool
	// Changed returns the fields of section guard whose values in the file differ from Guard.
	Changed func() []string
	Log     *slog.Logger
}

// Service is a guard and its doors. It is safe for concurrent use.
type Service struct {
	config   Config
	systemd  *sdnotify.Notifier
	doors    []*openDoor
	draining atomic.Bool
}

// ListenError is the error of a door whose listener could not be opened.
type ListenError struct {
	Door string
	Err  error
}

func (e *ListenError) Error() string { return fmt.Sprintf("door %s: %v", e.Door, e.Err) }

// Unwrap returns the error of the listener.
func (e *ListenError) Unwrap() error { return e.Err }

// Open creates the doors and opens their listeners.
func Open(ctx context.Context, c Config) (*Service, error) {
	s := &Service{config: c}
	decider, err := gateway.New(gateway.Config{
		Hotparam: c.Hotparam, RawPaths: c.Guard.Paths == config.PathsRaw, TrustCaller: c.Guard.TrustCaller,
	})
	if err == nil {
		s.doors, err = makeDoors(&s.config, decider)
	}
	if err != nil {
		return nil, err
	}
	if s.systemd, err = sdnotify.New(); err != nil {
		return nil, err
	}
	for _, d := range s.doors {
		if err := d.open(ctx); err != nil {
			s.Close()
			return nil, &ListenError{d.name, err}
		}
	}
	return s, nil
}

// Close closes everything that Open opened and Run has not closed.
func (s *Service) Close() {
	for _, d := range s.doors {
		d.close()
	}
}

// Listening calls f with the name and the address of each door.
func (s *Service) Listening(f func(name string, address net.Addr)) {
	for _, d := range s.doors {
		f(d.name, d.listener.Addr())
	}
}

// RunConfig configures [Service.Run]. All fields are required.
type RunConfig struct {
	Status  func(ctx context.Context) error                // serves health, readiness and metrics until ctx ends
	Alive   func(ctx context.Context) error                // returns an error if they are not served
	Hangups func(ctx context.Context, reload func()) error // calls reload for each SIGHUP until ctx ends
}

// Run serves until ctx ends or a door fails. Then the doors drain, each within a bounded time,
// and their helpers end after them.
func (s *Service) Run(ctx context.Context, with RunConfig) error {
	helperCtx, endHelpers := context.WithCancel(context.WithoutCancel(ctx))
	defer endHelpers()
	var helpers errgroup.Group
	doors, ctx := errgroup.WithContext(ctx)
	for _, d := range s.doors {
		helpers.Go(func() error { return d.tickets.Run(helperCtx) })
		doors.Go(func() error { return d.serve(ctx) })
	}
	statusEnded := make(chan error, 1)
	helpers.Go(func() error {
		statusEnded <- with.Status(helperCtx)
		return nil
	})
	doors.Go(func() error {
		select {
		case err := <-statusEnded:
			return fmt.Errorf("health and metrics: %w", err)
		case <-ctx.Done():
			return nil
		}
	})
	doors.Go(func() error { return with.Hangups(ctx, s.reload) })
	doors.Go(func() error {
		s.report(ctx, with.Alive)
		return nil
	})
	stop := context.AfterFunc(ctx, func() { s.draining.Store(true) })
	defer stop()
	err := doors.Wait()
	s.config.Log.Info("guard has drained")
	endHelpers()
	_ = helpers.Wait() // they always return nil
	return err
}

// reload reads the file again.
func (s *Service) reload() {
	s.systemd.Reloading()
	_ = s.config.Hotparam.Reload() // it is logged
	s.systemd.Ready(s.statusLine())
}

// report reports the guard's state to systemd until ctx ends.
func (s *Service) report(ctx context.Context, alive func(context.Context) error) {
	s.systemd.Ready(s.statusLine())
	s.systemd.Watch(ctx, func(ctx context.Context) (string, error) { return s.statusLine(), alive(ctx) }, func(err error) {
		s.config.Log.Error("this process is about to be restarted by its watchdog", "err", err)
	})
	<-ctx.Done()
	s.systemd.Stopping()
}

// Ready returns the guard's state in one line, and whether it accepts calls.
func (s *Service) Ready() (words string, ready bool) {
	if s.draining.Load() {
		return "not ready: draining", false
	}
	return s.statusLine(), true
}

// statusLine returns the state in one line. The guard is ready with or without Redis.
func (s *Service) statusLine() string {
	stats := s.config.Hotparam.Stats()
	words := "ready, following the hot keys"
	switch {
	case s.config.LimitsAlone:
		words = "ready, with limits alone (source: none)"
	case !stats.Watcher.Connected:
		words = "ready, but Redis is unavailable: hot keys stay as they were, and limits with scope: fleet or exact follow when_redis_is_away"
	}
	if stats.Rules.Problem != "" {
		words += "; the file cannot be used, and the last good one is in force: " + stats.Rules.Problem
	}
	if changed := s.config.Changed(); len(changed) > 0 {
		words += "; a restart would change these fields of section guard: " + strings.Join(changed, ", ")
	}
	return words
}
