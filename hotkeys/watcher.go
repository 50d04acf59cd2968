package hotkeys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

// WatcherConfig configures a [Watcher], a [ControlWatcher] or an [Invalidator]. Namespace is
// required; a zero field otherwise means its default.
type WatcherConfig struct {
	// Namespace separates fleets that share a Redis: [A-Za-z0-9_-]+.
	Namespace string
	// Poll is the interval at which Redis is read. Default 1 s for a Watcher. The others act on a
	// change within a second even if it is not pushed, so their default is 800 ms.
	Poll time.Duration
	// Timeout bounds each call to Redis. After failures it is up to three times as
	// long, since new connections take longer. Default 500 ms.
	Timeout time.Duration
	// Logger receives one line per event, never one per key. If nil, nothing is logged.
	Logger *slog.Logger
}

// soonPolled is the default of Poll, except for a Watcher.
const soonPolled = 800 * time.Millisecond

func (c WatcherConfig) withDefaults(poll time.Duration) WatcherConfig {
	c.Poll = cmp.Or(c.Poll, poll)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Logger = cmp.Or(c.Logger, noLog)
	return c
}

// defaultTimeout is the default of the bounds of calls to Redis.
const defaultTimeout = 500 * time.Millisecond

var noLog = slog.New(slog.DiscardHandler)

func (c WatcherConfig) validate(client redis.UniversalClient) error {
	return redisconfig.Check("WatcherConfig", c.Namespace, client,
		redisconfig.NamedDuration{Name: "Poll", Length: c.Poll}, redisconfig.NamedDuration{Name: "Timeout", Length: c.Timeout})
}

// Watcher follows the published set and keeps a [hotset.Writer] up to date. Pushes
// deliver changes at once. The poll recovers changes whose pushes were lost, renews the
// entries' ends, and reads the clock and the heartbeat. While Redis cannot be reached, or
// has lost its state, hot keys stay hot until their entries expire. A Watcher is safe for
// concurrent use.
type Watcher struct {
	cfg    WatcherConfig
	client redis.UniversalClient
	layout published.Layout
	target hotset.Writer
	jitter time.Duration

	rearm chan struct{} // next has changed

	// Used by the polling goroutine only:
	poller     *poller
	hinted     bool // a push caused the present poll
	hints      hints
	foreigners loglimit.Limit // limits the log lines about foreign values
	holds      loglimit.Limit // limits the log lines about new holds; guarded by mu
	lostSince  time.Time      // start of the time in which polls find changes missing in Redis

	mu         sync.Mutex // guards the rest; held while the target is updated, never during a call
	state      state
	shown      published.Version // version that the target has
	shownFleet fleetMark         // fleet that the target has
	next       time.Time         // time at which the next entry expires
	released   string            // last event of the controls that ended holds, or empty

	stats base.Guarded[WatcherStats] // without what the poller knows
}

// WatcherStats are a watcher's state, and its counters since it was made.
type WatcherStats struct {
	Version   string    // version of the set, as last read
	Keys      int       // hot keys in force
	Instances int       // instances that send counts, or 0 if not known
	Suspects  int       // keys that may be hot
	Held      int       // hot keys that outlive the heartbeat, included in Keys; see SetHold
	HeldSince time.Time // time at which that heartbeat expired, or zero
	Connected bool      // there is a subscription, and the last poll succeeded
	Answered  time.Time // time of the last poll that succeeded, or at first when the watcher was made
	Pushes    uint64    // pushes received
	Dropped   uint64    // pushes dropped because too many were waiting
	Malformed uint64    // pushes and changes that could not be read
	Bogus     uint64    // times that a pushed change was not in Redis
	Unread    uint64    // pushes that would have caused more polls than are allowed
	Foreign   uint64    // times that a key in Redis held a foreign value or foreign entries
	Polls     uint64    // polls that Redis answered
	Gaps      uint64    // times that missed changes were read from the stream
	Resyncs   uint64    // times that the whole set was read
	Lost      uint64    // polls that found no version: nothing is published yet, or Redis has lost its state
	Errors    uint64    // failed calls and lost subscriptions
}

// NewWatcher returns a watcher that updates target. It starts nothing and makes no call;
// the caller closes the client, once Run has returned. Make the client with [NewClient],
// or set its ContextTimeoutEnabled and MaxRetries: -1, so that calls keep to their
// deadlines.
func NewWatcher(client redis.UniversalClient, cfg WatcherConfig, target hotset.Writer) (*Watcher, error) {
	cfg = cfg.withDefaults(time.Second)
	if err := cfg.validate(client); err != nil {
		return nil, fmt.Errorf("watcher: %w", err)
	}
	if target == nil {
		return nil, errors.New("watcher: no target")
	}
	w := &Watcher{
		cfg:    cfg,
		client: client,
		layout: published.NewLayout(cfg.Namespace),
		target: target,
		jitter: jitter,
		rearm:  make(chan struct{}, 1),
		hints:  hints{seed: maphash.MakeSeed()},
		state:  state{entries: make(map[string]*heldEntry)},
	}
	w.poller = newPoller(pollerConfig{
		client: client, channel: w.layout.Changed, poll: cfg.Poll, timeout: cfg.Timeout, log: cfg.Logger,
		lost:      "cannot follow the hot set; hot keys stay hot until their entries expire",
		again:     "following the hot set again",
		onFailed:  func() { w.stats.Change(func(s *WatcherStats) { s.Errors++ }) },
		absorb:    w.absorb,
		onDropped: func() { w.stats.Change(func(s *WatcherStats) { s.Dropped++ }) },
		onUnread:  func() { w.stats.Change(func(s *WatcherStats) { s.Unread++ }) },
	})
	w.stats.Change(func(s *WatcherStats) { s.Answered = time.Now() })
	return w, nil
}

// Run follows the set until ctx ends. It then removes all keys from the target, since
// their entries would no longer expire. Failures are retried, counted, and logged once
// per outage. Run returns nil, and is called once.
func (w *Watcher) Run(ctx context.Context) error {
	var children sync.WaitGroup
	children.Go(func() { w.fade(ctx) })
	w.poller.run(ctx, nil, func(reason wake) {
		w.hinted = reason == wakePush
		_ = w.poll(ctx) // which records the error
	})
	children.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.beat = time.Time{}
	w.state.setSpan(0)
	w.show()
	w.state = state{entries: make(map[string]*heldEntry)}
	return nil
}

// fade removes entries from the target at their end. It has its own goroutine, so that it is on
// time even while the others wait.
func (w *Watcher) fade(ctx context.Context) {
	const never = time.Hour
	timer := time.NewTimer(never)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.rearm:
		case <-timer.C:
			w.mu.Lock()
			w.show()
			w.mu.Unlock()
		}
		w.mu.Lock()
		next := w.next
		w.mu.Unlock()
		wait := never
		if !next.IsZero() {
			wait = time.Until(next)
		}
		timer.Reset(wait)
	}
}

// show updates the target to the present state. The caller holds mu.
func (w *Watcher) show() {
	now := time.Now()
	change, next := w.state.nextChange(now)
	if version := w.state.version; version != w.shown || !change.Empty() {
		w.shown = version
		s := version.String()
		w.stats.Change(func(shown *WatcherStats) { shown.Version, shown.Keys = s, w.state.inForce })
		w.target.Update(s, change)
	}
	w.showHold()
	w.showFleet(now)
	if !next.Equal(w.next) {
		w.next = next
		base.Notify(w.rearm)
	}
}

// Stats returns the watcher's state and counters. It may be called at any time.
func (w *Watcher) Stats() WatcherStats {
	s := w.stats.Load()
	s.Pushes, s.Connected, _ = w.poller.state()
	return s
}
