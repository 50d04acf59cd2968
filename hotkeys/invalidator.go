package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
)

// AnswerCache keeps answers of requests, and invalidates them. It is safe for concurrent use. All
// processes give a target or a tag the same identifier.
type AnswerCache interface {
	// InvalidateTarget invalidates the answers to a target.
	InvalidateTarget(id uint64)
	// InvalidateTag invalidates the answers that a hot key's requests have received.
	InvalidateTag(id uint64)
	// Flush invalidates all answers.
	Flush()
}

// Invalidator invalidates answers at all instances of a namespace: in its own [AnswerCache] at
// once, and in those of the others within a second, by a stream in Redis. The stream has
// identifiers only.
//
// An invalidation may reach more answers than it names, and none less. An instance that may have
// missed one empties its cache. It does so if the last entry that it has read is no longer in the
// stream, and if Redis has lost the hot set, and perhaps an entry before it was read. It also does so
// after a failed read and after a new subscription, since Redis may have failed over and lost an
// entry that it had acknowledged. While Redis cannot be reached, answers at other instances last to
// their own end, and invalidations wait to be sent. An invalidation that a former primary takes after
// its successor has taken over is lost.
//
// A push only makes instances read the stream, so a client that may publish can forge nothing,
// and one that may write the stream can only empty caches. An Invalidator is safe for concurrent
// use.
type Invalidator struct {
	cfg     WatcherConfig
	client  redis.UniversalClient
	layout  published.Layout
	cache   AnswerCache
	id      string // identifies this Invalidator in the stream
	pending pendingInvalidations

	// Used by the polling goroutine only:
	poller  *poller
	foreign loglimit.Limit
	seen    streamMark

	// Used by the sending goroutine only:
	sending outage
	lines   loglimit.Limit
	denied  loglimit.Limit
	silent  loglimit.Limit

	stats base.Guarded[InvalidatorStats] // without what poller and pending know
}

// InvalidatorStats are an Invalidator's state, and its counters since it was made.
type InvalidatorStats struct {
	Connected bool   // there is a subscription, and the last poll succeeded
	Answered  bool   // the last poll succeeded
	Waiting   int    // targets and tags that are not sent yet
	Overflows uint64 // times that too many waited, so that all answers were invalidated instead
	Sent      uint64 // entries written to the stream
	Pushes    uint64 // pushes received
	Polls     uint64 // polls that Redis answered
	Received  uint64 // targets and tags that others have sent
	Flushes   uint64 // times that all answers here were invalidated
	Foreign   uint64 // polls and entries that are no invalidations
	Errors    uint64 // failed calls and lost subscriptions
}

// NewInvalidator returns an invalidator of the answers in cache. It starts nothing and makes no
// call; the caller closes the client, once Run has returned.
func NewInvalidator(client redis.UniversalClient, cfg WatcherConfig, cache AnswerCache) (*Invalidator, error) {
	cfg = cfg.withDefaults(soonPolled)
	if err := cfg.validate(client); err != nil {
		return nil, fmt.Errorf("invalidator: %w", err)
	}
	if cache == nil {
		return nil, errors.New("invalidator: no cache")
	}
	v := &Invalidator{cfg: cfg, client: client, layout: published.NewLayout(cfg.Namespace), cache: cache, id: newID(), seen: streamMark{unsure: true}}
	v.pending.kick = make(chan struct{}, 1)
	v.poller = newPoller(pollerConfig{
		client: client, channel: v.layout.Invalidation, poll: cfg.Poll, timeout: cfg.Timeout, log: cfg.Logger,
		lost:     "cannot follow the invalidations of cached answers; answers that are cached here last to their end",
		again:    "following the invalidations of cached answers again",
		onFailed: v.recordError,
	})
	return v, nil
}

func (v *Invalidator) recordError() { v.stats.Change(func(s *InvalidatorStats) { s.Errors++ }) }

// Target invalidates the answers to a target. It makes no call.
func (v *Invalidator) Target(id uint64) {
	v.cache.InvalidateTarget(id)
	v.pending.add(invalidated{id: id})
}

// Tag invalidates the answers of a tag. It makes no call.
func (v *Invalidator) Tag(id uint64) {
	v.cache.InvalidateTag(id)
	v.pending.add(invalidated{tag: true, id: id})
}

// Run sends invalidations and follows those of others until ctx ends. It then tries once more to
// send the pending ones. After that the cache receives none from others. Failures are retried,
// counted, and logged once per outage. Run returns nil, and is called once.
func (v *Invalidator) Run(ctx context.Context) error {
	var children sync.WaitGroup
	children.Go(func() { v.send(ctx) })
	v.poller.run(ctx, nil, func(reason wake) { v.poll(ctx, reason == wakePush) })
	children.Wait()
	return nil
}

// Stats returns the state and the counters. It may be called at any time.
func (v *Invalidator) Stats() InvalidatorStats {
	s := v.stats.Load()
	s.Pushes, s.Connected, s.Answered = v.poller.state()
	s.Waiting, s.Overflows = v.pending.counts()
	return s
}
