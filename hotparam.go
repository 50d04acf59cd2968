package hotparam

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/rulesfile"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Hotparam guards the requests of one process. It is safe for concurrent use.
type Hotparam struct {
	path      string
	log       *slog.Logger
	client    redis.UniversalClient
	transport Transport
	counts    *collector.Collector // nil with source: none
	guard     *middleware.Guard
	watcher   *hotkeys.Watcher
	controls  *hotkeys.ControlWatcher
	heartbeat *hotkeys.Heartbeat
	fleet     *fleetParts
	answers   *answers
	file      *rulesfile.Follower
	onReload  func(*config.File) // nil if there is none

	work     context.Context // ends when Close is called
	stop     context.CancelFunc
	tasks    errgroup.Group // tasks that run until work ends
	finished chan struct{}  // closed when tasks have ended
	err      error          // error of tasks; set when finished is closed

	mu     sync.Mutex // guards closed, and parts of fleet and answers
	closed bool
}

// Open reads the file at path and starts the parts that it describes: they send counts, and
// follow the hot set and the file. [Hotparam.Reload] puts a changed file in force. If the file is
// bad, the log says why and the rules stay as they are.
//
// Open makes no remote call. If Redis, a broker or the aggregator is unavailable, requests
// are still served. The outage is logged once, and the service is used once it is
// available. So an error concerns the file, a file that it names, or an option. Only the
// values of ctx are used: a server drains requests after its context has ended, and they
// are limited until [Hotparam.Close].
//
// With source: none in the file, Open opens no socket, no key becomes hot, and Redis is used
// only for limits with scope: share, fleet or exact.
//
// Unless [WithRedis] is given, Open turns off the log of package go-redis, which all
// clients of a process share and which has a line for each connection that fails. A
// program that wants it calls redis.SetLogger afterwards.
func Open(ctx context.Context, path string, opts ...Option) (*Hotparam, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("hotparam: %w", err)
	}
	data, err := config.Read(path)
	if err != nil {
		return nil, fmt.Errorf("hotparam: %w", err)
	}
	file, err := config.Parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("hotparam: %w", err)
	}
	h := &Hotparam{path: path, log: o.log, onReload: o.onReload, finished: make(chan struct{})}
	if err := h.build(file, o); err != nil {
		return nil, errors.Join(fmt.Errorf("hotparam: %s: %w", path, err), h.discard(o))
	}
	h.file = h.newRulesFile(file, data)
	h.start(context.WithoutCancel(ctx), file, o)
	return h, nil
}

// build makes the parts and starts none of them.
func (h *Hotparam) build(file *config.File, o *options) (err error) {
	namespace := file.Rules.Namespace
	if h.client = o.redis; h.client == nil {
		logging.Disable()
		if h.client, err = hotkeys.NewClientFrom(hotkeys.ClientConfig(file.Aggregator.WithDefaults().Redis)); err != nil {
			return err
		}
	}
	if h.fleet, err = h.newFleet(namespace, o); err != nil {
		return err
	}
	key, err := file.Aggregator.SigningKey()
	if err != nil {
		return err
	}
	if err := file.ReadRedactKey(); err != nil {
		return err
	}
	if file.Aggregator.Source != config.SourceNone {
		if h.transport, err = OpenTransport(TransportConfig{File: file, Instance: o.name, Key: key, Log: o.log}); err != nil {
			return err
		}
		if h.counts, err = collector.New(collector.Config{Sink: h.transport.Sink, Rules: file.Rules, Log: o.log}); err != nil {
			return err
		}
	}
	if h.answers, err = h.newAnswers(namespace); err != nil {
		return err
	}
	guarding := append([]middleware.Option{middleware.WithLog(o.log), middleware.WithSharer(h.answers)}, h.fleet.options()...)
	if h.guard, err = middleware.New(file.Rules, h.counts, append(guarding, o.middleware...)...); err != nil {
		return err
	}
	h.answers.Adopt(file.Rules)
	if h.watcher, err = hotkeys.NewWatcher(h.client, hotkeys.WatcherConfig{Namespace: namespace, Logger: o.log}, h.guard.HotSet()); err != nil {
		return err
	}
	h.watcher.SetHold(file.Aggregator.HoldDuringOutage)
	if h.controls, err = hotkeys.NewControlWatcher(h.client, hotkeys.WatcherConfig{Namespace: namespace, Logger: o.log}, h.guard); err != nil {
		return err
	}
	h.heartbeat, err = h.newHeartbeat(namespace, o)
	return err
}

// discard closes the parts that build has made.
func (h *Hotparam) discard(o *options) (err error) {
	if h.transport.Sink != nil {
		err = h.transport.Sink.Close()
	}
	if o.redis == nil && h.client != nil {
		err = errors.Join(err, h.client.Close())
	}
	return err
}

// start starts the tasks that run until Close.
func (h *Hotparam) start(ctx context.Context, file *config.File, o *options) {
	h.work, h.stop = context.WithCancel(ctx)
	if h.counts != nil {
		h.run(h.counts.Run)
		h.run(h.watcher.Run)
		h.run(h.controls.Run)
		h.run(h.heartbeat.Run)
		h.run(newMismatch(h, o.name).run)
	}
	h.run(h.guard.Run)
	h.run(h.answers.run)
	h.run(h.file.Run)
	if o.signals {
		h.run(h.followSignals())
	}
	if check := h.transport.Check; check != nil {
		h.run(func(ctx context.Context) error {
			if err := check(ctx); err != nil && ctx.Err() == nil {
				h.log.Warn("counts do not arrive", "err", err)
			}
			return nil
		})
	}
	h.mu.Lock()
	h.assume(file.Instances)
	h.followFleet(file.Rules)
	h.followInvalidations(file.Rules)
	h.mu.Unlock()
	go func() {
		h.err = h.tasks.Wait()
		if o.redis == nil {
			h.err = errors.Join(h.err, h.client.Close())
		}
		close(h.finished)
	}()
}

// run runs a task until Close. A task may end earlier, since no other depends on it.
func (h *Hotparam) run(task func(context.Context) error) {
	h.tasks.Go(func() error { return task(h.work) })
}

// closeTimeout bounds a Close whose context has no deadline.
const closeTimeout = 5 * time.Second

// Close waits until requests have released their permits of limits with scope: exact. Then it
// sends the remaining counts, leaves the fleet and hands over the unused part of limits with
// scope: share. It returns when all tasks have ended; call it after the server's Shutdown.
//
// If ctx ends first, Close returns an error and the tasks still end in the background. If ctx
// has no deadline, Close takes 5 s at most. Later requests pass or are refused by the limits of
// this process alone. Close may be called several times and concurrently; each call waits.
func (h *Hotparam) Close(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, closeTimeout)
		defer cancel()
	}
	h.awaitPermits(ctx)
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	select {
	case <-h.finished:
		return h.err
	case <-ctx.Done():
		return fmt.Errorf("hotparam: close: %w", ctx.Err())
	}
}

// awaitPermits waits until this process holds no permits, for at most three quarters of the time
// that ctx leaves. The tasks need the rest to end.
func (h *Hotparam) awaitPermits(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*3/4)
		defer cancel()
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if s := h.fleet.semaphore.Stats(); s.Held == 0 && s.Waiting == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-h.finished:
			return
		case <-ticker.C:
		}
	}
}

// Handler returns a handler that passes allowed requests to next; see
// [middleware.Guard.Handler].
func (h *Hotparam) Handler(next http.Handler) http.Handler { return h.guard.Handler(next) }

// Begin counts a request and decides on it, for callers that have no http.Handler; see
// [middleware.Guard.Begin]. The caller ends the ticket, which may be nil, when the request
// is done.
func (h *Hotparam) Begin(req middleware.Request) (rules.Decision, *middleware.Ticket) {
	return h.guard.Begin(req)
}

// Share answers a request of a hot key together with others, for callers of Begin; see
// [middleware.Guard.Share].
func (h *Hotparam) Share(x *middleware.Exchange, d *rules.Decision) middleware.Shared {
	return h.guard.Share(x, d)
}

// Changed drops the answers to the target of a request that has changed it, for callers of Begin;
// see [middleware.Guard.Changed].
func (h *Hotparam) Changed(status int, host, path, query string) {
	h.guard.Changed(status, host, path, query)
}

// Enter counts and decides on a request that is not HTTP, such as an RPC or a job; see
// [middleware.Guard.Enter].
func (h *Hotparam) Enter(ctx context.Context, resource string, params ...rules.Param) rules.Decision {
	return h.guard.Enter(ctx, resource, params...)
}

// ReadsMessage reports whether a rule for an RPC names fields of its message; see
// [middleware.Guard.ReadsMessage].
func (h *Hotparam) ReadsMessage(resource string) bool { return h.guard.ReadsMessage(resource) }

// HotKeys returns the keys that are hot now, the highest rate first.
func (h *Hotparam) HotKeys() []middleware.HotKey { return h.guard.HotKeys() }

// Guard returns the guard, whose further methods Hotparam does not repeat, such as
// [middleware.Guard.IsHot] and [middleware.Guard.EnterCost].
func (h *Hotparam) Guard() *middleware.Guard { return h.guard }
