package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"time"
)

// CachedConfig configures a [Cached]. The zero value is valid.
type CachedConfig struct {
	// Keys is the number of denials that are remembered at a time, up to 16,777,216. Zero
	// means 16,384. At most 16 bytes for each are reserved; a denial takes about
	// 200.
	Keys int
	// Longest is the longest time that a denial is remembered. Zero means a second.
	Longest time.Duration
	// Clock returns the time since a fixed instant, for tests and replays. Nil means the
	// monotonic clock.
	Clock func() time.Duration
}

// Defaults of a [CachedConfig].
const (
	defaultCachedKeys = 1 << 14
	defaultLongest    = time.Second
)

// Cached is a backend that remembers denials. However far demand exceeds the limit, a key costs
// its backend
//
//   - one call in each Longest until a denial's RetryAfter has passed,
//   - then, for a bucket, one call for each permit that returns, at the quota's rate,
//   - or, for a window, the calls that begin before the next denial has arrived,
//
// and all calls that begin before the first denial has arrived. All other asks for as many
// permits or more are denied at once. A Cached saves little for a window whose permits return
// more often than a call takes, such as a sliding_log with a high rate. Every instance has its
// own memory.
//
// If a Cached denies one of several asks that are Together, it sends none of them.
//
// It allows no ask on its own. It denies an ask that its backend would allow only if others
// have returned or reset permits since, or have other quotas. It does so only for Longest and a
// quarter of it. A Return, a Forget or another Quota that passes through it ends the denial of
// a key. Its RetryAfter is never too long. It is too short for an ask for more permits than
// were denied before, or if others have taken permits since.
//
// It does not remember denials that have to reach the backend: denials that count themselves
// (Quota.CountDenied) and denials that lock the key (Quota.Penalty). Denials under a lock are
// remembered for no longer than Penalty, so the first denial after the lock starts another one
// no later than that. A Cached goes inside a [Failover], which consults its memory even while
// the backend does not answer.
//
// It is safe for concurrent use and lock-free. It is a [Batcher] that makes at most one call of
// its backend, if the backend is a Batcher too.
type Cached struct {
	around
	seed    maphash.Seed
	longest time.Duration
	clock   func() time.Duration
	slots   []cachedSlot // the latest denial of the keys of each slot; a power of two
	saved   atomic.Uint64
	asked   atomic.Uint64
}

var (
	_ Batcher   = (*Cached)(nil)
	_ Clustered = (*Cached)(nil)
)

// NewCached returns a backend that remembers the denials of backend.
func NewCached(backend Backend, cfg CachedConfig) (*Cached, error) {
	if backend == nil {
		return nil, errors.New("limiter: NewCached: no backend")
	}
	cfg.Keys = cmp.Or(cfg.Keys, defaultCachedKeys)
	cfg.Longest = cmp.Or(cfg.Longest, defaultLongest)
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	if cfg.Longest < 0 {
		return nil, fmt.Errorf("limiter: CachedConfig.Longest %v: must be positive", cfg.Longest)
	}
	if cfg.Keys < 1 || cfg.Keys > maxMaxKeys {
		return nil, fmt.Errorf("limiter: CachedConfig.Keys %d: must be 1 to %d", cfg.Keys, maxMaxKeys)
	}
	return &Cached{
		around: aroundOf(backend), seed: maphash.MakeSeed(), longest: cfg.Longest, clock: cfg.Clock,
		slots: make([]cachedSlot, 1<<bits.Len(uint(cfg.Keys-1))),
	}, nil
}

// Do implements [Backend].
func (c *Cached) Do(ctx context.Context, op Op) (Result, error) {
	if op.Name == "" || op.Key == "" {
		return Result{}, ErrNoKey
	}
	if res, ok := c.recall(&op); ok {
		return res, nil
	}
	return c.askBackend(ctx, op)
}

// askBackend asks the backend, and remembers a denial.
func (c *Cached) askBackend(ctx context.Context, op Op) (Result, error) {
	sent := c.sending(&op, c.clock())
	c.asked.Add(1)
	res, err := c.backend.Do(ctx, op)
	sent.recordResult(&op, &res, err, c.longest)
	return res, err
}

// DoAll implements [Batcher].
func (c *Cached) DoAll(ctx context.Context, ops []Op, results []Result) error {
	if c.batcher == nil {
		return eachInTurn(ops, results, func(i int) (Result, error) { return c.Do(ctx, ops[i]) })
	}
	lasts := true // whether no op ends a remembered denial for a later op
	for i := range ops {
		if ops[i].Name == "" || ops[i].Key == "" {
			return ErrNoKey
		}
		lasts = lasts && ops[i].Kind != Return && ops[i].Kind != Forget
	}
	if !lasts {
		return c.askAll(ctx, ops, results)
	}
	var remaining opSubset
	denied := false // whether an ask with Together is denied, so that the other ones are not sent
	for i := range ops {
		if res, ok := c.recall(&ops[i]); ok {
			results[i] = res
			denied = denied || ops[i].together()
			continue
		}
		remaining.add(i, nil, ops[i])
	}
	if denied {
		remaining.dropTogether(results)
	}
	if len(remaining.ops) == 0 {
		return nil
	}
	err := c.askAll(ctx, remaining.ops, remaining.results)
	return remaining.settle(results, nil, err).asError()
}

// askAll asks the backend, and remembers denials.
func (c *Cached) askAll(ctx context.Context, ops []Op, results []Result) error {
	now, sent := c.clock(), make([]sentAsk, len(ops))
	for i := range ops {
		sent[i] = c.sending(&ops[i], now)
	}
	c.asked.Add(1)
	err := c.batcher.DoAll(ctx, ops, results)
	for i := range ops {
		if !askedTwice(ops, i) {
			sent[i].recordResult(&ops[i], &results[i], ErrorOf(err, i), c.longest)
		}
	}
	return err
}

// asking is a Cached whose memory was consulted before.
type asking struct{ *Cached }

// Do implements [Backend].
func (a asking) Do(ctx context.Context, op Op) (Result, error) { return a.askBackend(ctx, op) }

// DoAll implements [Batcher].
func (a asking) DoAll(ctx context.Context, ops []Op, results []Result) error {
	if a.batcher == nil {
		return eachInTurn(ops, results, func(i int) (Result, error) { return a.Do(ctx, ops[i]) })
	}
	return a.askAll(ctx, ops, results)
}

// CachedStats counts the asks of a [Cached].
type CachedStats struct {
	Saved uint64 // asks that were denied from memory
	Asked uint64 // calls of the backend
}

// Stats returns a snapshot of the counters.
func (c *Cached) Stats() CachedStats {
	return CachedStats{Saved: c.saved.Load(), Asked: c.asked.Load()}
}
