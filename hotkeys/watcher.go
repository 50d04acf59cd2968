package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotset"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/wire"
)

// WatcherConfig says what a [Watcher] follows and how.
type WatcherConfig struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Poll is how often the version is read. Default 1 s.
	Poll time.Duration
	// Timeout bounds each call to Redis; after failures, up to three times as long, for
	// new connections. Default 500 ms.
	Timeout time.Duration
	// Jitter is the most by which a read of the whole set is delayed when
	// changes were missed that the stream has no more: the whole fleet misses
	// them at once. Default 200 ms.
	Jitter time.Duration
	// Logger gets one line per event, never per key. Default: discard.
	Logger *slog.Logger
}

func (c WatcherConfig) withDefaults() WatcherConfig {
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Timeout == 0 {
		c.Timeout = 500 * time.Millisecond
	}
	if c.Jitter == 0 {
		c.Jitter = 200 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c WatcherConfig) validate() error {
	if !hotparam.ValidNamespace(c.Namespace) {
		return fmt.Errorf("WatcherConfig.Namespace %q: want one or more of A-Z a-z 0-9 _ -", c.Namespace)
	}
	if c.Poll < 0 || c.Timeout < 0 || c.Jitter < 0 {
		return fmt.Errorf("WatcherConfig.Poll %v, Timeout %v and Jitter %v must not be negative", c.Poll, c.Timeout, c.Jitter)
	}
	return nil
}

// Watcher follows the published set and keeps a [hotset.Writer] up to date. Pushes
// bring a change at once; the poll makes up for pushes that were lost, renews
// the entries' ends, and reads the clock and the heartbeat. While Redis cannot
// be reached, or has lost its state, what is hot stays so until its end. Safe
// for concurrent use.
type Watcher struct {
	cfg    WatcherConfig
	client redis.UniversalClient
	layout Layout
	target hotset.Writer

	pushes     chan string   // payloads; full: the poll makes up
	kick       chan struct{} // poll now
	deaf       chan struct{} // subscribe again: nothing comes of what is pushed
	hearing    hearing
	hints      hints          // likewise
	outage     outage         // of the polls; likewise
	lines      loglimit.Limit // of that; likewise
	foreigners loglimit.Limit // of what is not ours; likewise
	lostSince  time.Time      // polls have found changes missing in Redis since; likewise
	rearm      chan struct{}  // the next end has changed

	mu         sync.Mutex // guards the rest; held while the target is changed, never during a call
	state      state
	shown      wire.HotVersion // what the target has
	shownFleet fleetMark       // likewise, of the fleet
	next       time.Time       // when what is in force changes by itself

	stats watcherStats
}

// WatcherStats are a watcher's counters since its start, and its state.
type WatcherStats struct {
	Version   string // of the set that is followed
	Keys      int    // in force now
	Instances int    // that send counts, by the aggregator; 0: not known
	Suspects  int    // keys that may be hot
	Connected bool   // subscribed, and the last call did not fail
	Pushes    uint64 // pushes received
	Dropped   uint64 // pushes dropped, more having come than could be worked off
	Malformed uint64 // pushes and changes that could not be read
	Bogus     uint64 // times that a push told of a change that Redis does not have
	Unread    uint64 // pushes that told of something to read, more than are followed: the poll made up for them
	Foreign   uint64 // times that a key in Redis, or entries in it, held what is not ours
	Polls     uint64 // polls that Redis answered
	Gaps      uint64 // times that changes had to be read from the stream
	Resyncs   uint64 // times that the whole set was read
	Lost      uint64 // polls that found no version: nothing was published yet, or Redis has lost its state
	Errors    uint64 // calls that failed, and lost subscriptions
}

type watcherStats struct {
	version                                                          atomic.Pointer[string]
	keys, instances, suspects                                        atomic.Int64
	subscribed, answered                                             atomic.Bool
	subscriptions                                                    atomic.Uint64
	pushes, dropped, malformed, polls, gaps, resyncs, lost, failures atomic.Uint64
	bogus, unread, foreign                                           atomic.Uint64
}

// maxPushes is how many pushes may wait.
const maxPushes = 256

// NewWatcher checks the configuration. It starts nothing; the client stays the
// caller's. Make the client with [NewClient], or set ContextTimeoutEnabled and
// MaxRetries -1, so that calls keep to their deadlines.
func NewWatcher(client redis.UniversalClient, cfg WatcherConfig, target hotset.Writer) (*Watcher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("watcher: %w", err)
	}
	if client == nil || target == nil {
		return nil, errors.New("watcher: no Redis client, or no target")
	}
	return &Watcher{
		cfg:    cfg,
		client: client,
		layout: NewLayout(cfg.Namespace),
		target: target,
		pushes: make(chan string, maxPushes),
		kick:   make(chan struct{}, 1),
		deaf:   make(chan struct{}, 1),
		rearm:  make(chan struct{}, 1),
		hints:  hints{seed: maphash.MakeSeed()},
		state:  state{entries: make(map[string]*heldEntry)},
	}, nil
}

// Run follows the set until ctx ends, then leaves nothing hot, as nobody would
// end the entries any more. It returns nil; failures are retried, logged once
// per outage and counted.
func (w *Watcher) Run(ctx context.Context) error {
	var children sync.WaitGroup
	children.Go(func() { w.subscribe(ctx) })
	children.Go(func() { w.fade(ctx) })
	w.follow(ctx)
	children.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.beat = time.Time{}
	w.show()
	w.state = state{entries: make(map[string]*heldEntry)}
	return nil
}

// fade takes entries out of force at their end, whether or not Redis can be
// reached and whatever the other goroutines wait for.
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

// show makes the target agree with the state as it is now. The caller holds mu.
func (w *Watcher) show() {
	now := time.Now()
	change, next := w.state.nextChange(now)
	if version := w.state.version; version != w.shown || !change.Empty() {
		w.shown = version
		s := version.String()
		w.stats.version.Store(&s)
		w.stats.keys.Store(int64(w.state.inForce))
		w.target.Update(s, change)
	}
	w.showFleet(now)
	if !next.Equal(w.next) {
		w.next = next
		select {
		case w.rearm <- struct{}{}:
		default:
		}
	}
}

// call bounds one call of the polling goroutine to Redis.
func (w *Watcher) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.outage.timeout(w.cfg.Timeout))
}

// Stats may be called at any time.
func (w *Watcher) Stats() WatcherStats {
	s := WatcherStats{
		Keys:      int(w.stats.keys.Load()),
		Instances: int(w.stats.instances.Load()),
		Suspects:  int(w.stats.suspects.Load()),
		Connected: w.stats.subscribed.Load() && w.stats.answered.Load(),
		Pushes:    w.stats.pushes.Load(),
		Dropped:   w.stats.dropped.Load(),
		Malformed: w.stats.malformed.Load(),
		Bogus:     w.stats.bogus.Load(),
		Unread:    w.stats.unread.Load(),
		Foreign:   w.stats.foreign.Load(),
		Polls:     w.stats.polls.Load(),
		Gaps:      w.stats.gaps.Load(),
		Resyncs:   w.stats.resyncs.Load(),
		Lost:      w.stats.lost.Load(),
		Errors:    w.stats.failures.Load(),
	}
	if v := w.stats.version.Load(); v != nil {
		s.Version = *v
	}
	return s
}
