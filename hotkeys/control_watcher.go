package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
)

// ControlTarget applies controls.
type ControlTarget interface {
	// SetControls replaces the controls that are in force. The target may keep the slice, and
	// must not change it. Until is on the local clock. Calls do not overlap.
	SetControls(controls []published.Control)
}

// ControlWatcher follows the controls of a namespace and keeps a [ControlTarget] up to date. A
// push only makes it read them from Redis, so no client that may publish can forge one. A Redis
// user who may not subscribe still has the polls. While Redis cannot be reached each control lasts
// to its end. If Redis has no controls, even because it lost them, none is in force. It is safe for
// concurrent use.
type ControlWatcher struct {
	cfg    WatcherConfig
	client redis.UniversalClient
	layout published.Layout
	target ControlTarget

	poller *poller

	// Used by the polling goroutine only:
	foreign loglimit.Limit
	seen    controlMark
	held    []published.Control // in force, with Until on the local clock, monotonic

	stats base.Guarded[ControlWatcherStats] // without what the poller knows
}

// ControlWatcherStats are a watcher's state, and its counters since it was made.
type ControlWatcherStats struct {
	InForce   int    // controls in force
	Connected bool   // there is a subscription, and the last poll succeeded
	Answered  bool   // the last poll succeeded
	Pushes    uint64 // pushes received
	Polls     uint64 // polls that Redis answered
	Loads     uint64 // times that the controls were read
	Foreign   uint64 // times that controls could not be read
	Errors    uint64 // failed calls and lost subscriptions
}

// NewControlWatcher returns a watcher that updates target. It starts nothing and makes no call;
// the caller closes the client, once Run has returned.
func NewControlWatcher(client redis.UniversalClient, cfg WatcherConfig, target ControlTarget) (*ControlWatcher, error) {
	cfg = cfg.withDefaults(soonPolled)
	if err := cfg.validate(client); err != nil {
		return nil, fmt.Errorf("control watcher: %w", err)
	}
	if target == nil {
		return nil, errors.New("control watcher: no target")
	}
	w := &ControlWatcher{cfg: cfg, client: client, layout: published.NewLayout(cfg.Namespace), target: target}
	w.poller = newPoller(pollerConfig{
		client: client, channel: w.layout.Control, poll: w.cfg.Poll, timeout: w.cfg.Timeout, log: w.cfg.Logger,
		lost:     "cannot follow the controls of operators; controls in force last to their end",
		again:    "following the controls again",
		onFailed: func() { w.stats.Change(func(s *ControlWatcherStats) { s.Errors++ }) },
	})
	return w, nil
}

// Run follows the controls until ctx ends. It then removes them all from the target, since they
// would no longer end. Failures are retried, counted, and logged once per outage. Run returns
// nil, and is called once.
func (w *ControlWatcher) Run(ctx context.Context) error {
	fade := time.NewTimer(never)
	defer fade.Stop()
	w.poller.run(ctx, fade.C, func(reason wake) {
		if reason == wakeAlarm {
			w.expire()
		} else {
			w.poller.record(ctx, w.checkMark(ctx, reason == wakePush))
		}
		wait := never
		for i := range w.held {
			wait = min(wait, max(0, time.Until(w.held[i].Until)))
		}
		fade.Reset(wait)
	})
	w.held = nil
	w.show()
	return nil
}

// Stats returns the state and the counters. It may be called at any time.
func (w *ControlWatcher) Stats() ControlWatcherStats {
	s := w.stats.Load()
	s.Pushes, s.Connected, s.Answered = w.poller.state()
	return s
}

// checkMark loads the controls if their mark in Redis has changed.
func (w *ControlWatcher) checkMark(ctx context.Context, hinted bool) error {
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	mark, err := readControlMark(call, w.client, w.layout)
	if err != nil {
		return unlessForeign(err, "poll the controls", w.reportForeign)
	}
	w.stats.Change(func(s *ControlWatcherStats) { s.Polls++ })
	w.poller.subscription.check()
	if mark == w.seen {
		return nil
	}
	if !hinted {
		w.poller.subscription.foundByPoll()
	}
	switch {
	case mark.fields > maxControlFields:
		w.reportForeign(fmt.Errorf("%s has %d fields", w.layout.Control, mark.fields))
		return nil
	case mark.fields == 0:
		w.seen, w.held = mark, nil
		w.show()
		return nil
	}
	return w.load(ctx)
}

func (w *ControlWatcher) load(ctx context.Context) error {
	call, cancel := w.poller.callContext(ctx)
	defer cancel()
	w.stats.Change(func(s *ControlWatcherStats) { s.Loads++ })
	issued := time.Now()
	set, err := readControls(call, w.client, w.layout)
	if err != nil {
		return unlessForeign(err, "read the controls", w.reportForeign)
	}
	if set.unreadable > 0 {
		w.reportForeign(fmt.Errorf("%d controls cannot be read", set.unreadable))
	}
	w.seen, w.held = set.controlMark, nil
	for _, c := range set.controls {
		left := c.Until.Sub(set.readAt)
		if left <= 0 || left > published.MaxControlTime+time.Minute {
			continue // it has ended, or is from before Redis's clock was set back
		}
		c.Until = issued.Add(left)
		w.held = append(w.held, c)
	}
	w.show()
	return nil
}

// expire removes the controls that have ended.
func (w *ControlWatcher) expire() {
	now := time.Now()
	w.held = slices.DeleteFunc(w.held, func(c published.Control) bool { return !c.Until.After(now) })
	w.show()
}

// show updates the target.
func (w *ControlWatcher) show() {
	if len(w.held) == 0 && w.stats.Load().InForce == 0 {
		return
	}
	w.stats.Change(func(s *ControlWatcherStats) { s.InForce = len(w.held) })
	w.target.SetControls(slices.Clone(w.held))
}

// reportForeign records that the controls in Redis cannot be read. Those in force last to their
// end.
func (w *ControlWatcher) reportForeign(err error) {
	w.stats.Change(func(s *ControlWatcherStats) { s.Foreign++ })
	w.foreign.Warn(lineRate, w.cfg.Logger, "the controls in Redis cannot be read; the next hotparam pin, block, allow or release repairs them", "key", w.layout.Control, "err", err)
}
