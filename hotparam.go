package hotparam

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/hotkeys"
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

// run runs a task until Close. A task may end earlier, since no other depends on it.
func (h *Hotparam) run(task func(context.Context) error) {
	h.tasks.Go(func() error { return task(h.work) })
}

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

// InvalidateTarget drops the answers to a target at all instances, within a second. host is as in
// [http.Request].Host, path is escaped, and query is raw. A request that is neither GET, HEAD nor
// OPTIONS and does not fail does the same.
func (h *Hotparam) InvalidateTarget(host, path, query string) {
	h.answers.Invalidate(host, path, query)
}

// InvalidateKey drops the answers to all requests of a hot key at all instances, within a second.
func (h *Hotparam) InvalidateKey(key rules.Key) { h.answers.invalidateKey(key) }

// Guard returns the guard, whose further methods Hotparam does not repeat, such as
// [middleware.Guard.IsHot] and [middleware.Guard.EnterCost].
func (h *Hotparam) Guard() *middleware.Guard { return h.guard }
