package limiter

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// CachedConfig configures a [Cached]. The zero value is valid.
type CachedConfig struct {
	// Keys is the number of denials that are remembered at a time, up to 16,777,216. Zero
	// means DefaultCachedKeys. At most 16 bytes for each are reserved; a denial takes about
	// 200.
	Keys int
	// Longest is the longest time that a denial is remembered. Zero means DefaultLongest.
	Longest time.Duration
	// Clock returns the time since a fixed instant, for tests and replays. Nil means the
	// monotonic clock.
	Clock func() time.Duration
}

// Defaults of a [CachedConfig].
const (
	DefaultCachedKeys = 1 << 14
	DefaultLongest    = time.Second
)

// Cached is a backend that remembers denials: until the RetryAfter that its backend returned
// is over, it denies asks for as many permits of the key or more without a call. However far
// demand exceeds the limit, a key costs one call for each permit that comes back, and one in
// each Longest.
//
// Of asks that are Together, none is sent if it denies one of them.
//
// It allows nothing by itself. It denies what its backend would allow only if others have
// returned or reset permits meanwhile, or have other quotas, and only for Longest. A Return, a
// Forget or another Quota that passes through it ends the denial of a key. Its RetryAfter is
// never too long; it is too short for an ask for more permits than were denied before, or if
// others have taken permits meanwhile.
//
// It does not remember what has to reach the backend: denials that count themselves
// (Quota.CountDenied) or lock the key (Quota.Penalty). Denials under a lock are remembered for
// no longer than Penalty, so the first denial after the lock starts another one no later than
// that.
// It goes inside a [Failover], whose denials end when its primary is back.
//
// It is safe for concurrent use, lock-free, and a [Batcher] that makes at most one call of its
// backend, if that is one too.
type Cached struct {
	around
	seed    maphash.Seed
	longest time.Duration
	clock   func() time.Duration
	slots   []cachedSlot // a power of two; the latest denial whose key falls to it
	saved   atomic.Uint64
	asked   atomic.Uint64
}

// cachedSlot tells, by its changes, whether a denial is older than a Return that came
// while it was under way.
type cachedSlot struct {
	denial  atomic.Pointer[denial]
	changes atomic.Uint64
}

// denial is not changed once made.
type denial struct {
	name, key    string
	quota        *hotparam.Quota
	least        int64         // how many permits have to be there at least, for it to deny
	until        time.Duration // for how long it is remembered
	retry, reset time.Duration // when it said that a retry can pass, and that all is back
	decision     hotparam.Decision
}

var (
	_ Batcher   = (*Cached)(nil)
	_ Clustered = (*Cached)(nil)
)

// NewCached returns a backend that remembers what backend denies.
func NewCached(backend Backend, cfg CachedConfig) (*Cached, error) {
	if backend == nil {
		return nil, errors.New("limiter: NewCached: no backend")
	}
	if cfg.Keys == 0 {
		cfg.Keys = DefaultCachedKeys
	}
	if cfg.Longest == 0 {
		cfg.Longest = DefaultLongest
	}
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
	now, slot := c.clock(), c.slot(op)
	if res, ok := c.remembered(slot, op, now); ok {
		return res, nil
	}
	changes := slot.changes.Load()
	c.asked.Add(1)
	res, err := c.backend.Do(ctx, op)
	slot.learn(changes, op, res, err, now, c.longest)
	return res, err
}

// DoAll implements [Batcher].
func (c *Cached) DoAll(ctx context.Context, ops []Op, results []Result) error {
	if c.batcher == nil {
		return eachInTurn(ops, results, func(i int) (Result, error) { return c.Do(ctx, ops[i]) })
	}
	lasts := true // what is remembered, as none of ops ends it for a later one
	for i := range ops {
		if ops[i].Name == "" || ops[i].Key == "" {
			return ErrNoKey
		}
		lasts = lasts && ops[i].Kind != Return && ops[i].Kind != Forget
	}
	type sent struct {
		place   int // in ops
		changes uint64
	}
	var (
		now  = c.clock()
		rest = make([]Op, 0, len(ops))
		how  = make([]sent, 0, len(ops))
	)
	denied := false // an ask that is Together, so the rest of these are not sent
	for i, op := range ops {
		slot := c.slot(op)
		if lasts {
			if res, ok := c.remembered(slot, op, now); ok {
				results[i] = res
				denied = denied || op.together()
				continue
			}
		}
		rest, how = append(rest, op), append(how, sent{i, slot.changes.Load()})
	}
	if denied {
		n := 0
		for k, op := range rest {
			if op.together() {
				results[how[k].place] = notAsked
				continue
			}
			rest[n], how[n] = op, how[k]
			n++
		}
		rest, how = rest[:n], how[:n]
	}
	if len(rest) == 0 {
		return nil
	}
	c.asked.Add(1)
	got := make([]Result, len(rest))
	err := c.batcher.DoAll(ctx, rest, got)
	var errs OpErrors
	for i, s := range how {
		failed := ErrorOf(err, i)
		if !askedTwice(rest, i) {
			c.slot(rest[i]).learn(s.changes, rest[i], got[i], failed, now, c.longest)
		}
		results[s.place] = got[i]
		errs = setError(errs, len(ops), s.place, failed)
	}
	return errs.asError()
}

func (c *Cached) slot(op Op) *cachedSlot {
	h := maphash.String(c.seed, op.Key) ^ bits.RotateLeft64(maphash.String(c.seed, op.Name), 32)
	return &c.slots[h&uint64(len(c.slots)-1)]
}

// least is how many permits have to be there for the ask to be allowed; -1 where that
// is not the question, or where there never are as many.
func least(op Op) int64 {
	n, keep := op.N, max(op.Keep, 0)
	if op.Kind == AtMost {
		n = min(n, 1)
	}
	if op.Kind > AtMost || op.Quota == nil || op.Quota.CountDenied || n < 0 || keep > op.Quota.Burst-n {
		return -1
	}
	if n == 0 {
		return 0
	}
	return n + keep
}

// remembered returns the denial of an ask, if there is one.
func (c *Cached) remembered(slot *cachedSlot, op Op, now time.Duration) (Result, bool) {
	d := slot.denial.Load()
	if d == nil || op.Quota == nil || now >= d.until || *d.quota != *op.Quota || d.key != op.Key || d.name != op.Name {
		return Result{}, false
	}
	if n := least(op); n < 0 || n < d.least {
		return Result{}, false
	}
	c.saved.Add(1)
	res := Result{Decision: d.decision}
	res.RetryAfter = d.retry - now
	res.ResetAfter = max(res.RetryAfter, d.reset-now)
	return res, true
}

// learn records the outcome of an op that was sent at now.
func (s *cachedSlot) learn(changes uint64, op Op, res Result, err error, now, longest time.Duration) {
	if op.Kind == Return || op.Kind == Forget {
		s.changes.Add(1)
		s.denial.Store(nil)
		return
	}
	n := least(op)
	locked := res.Reason == hotparam.ReasonLocked
	if op.Quota != nil && locked { // the lock may end first, and the next denial start another
		longest = min(longest, op.Quota.Penalty)
	}
	if err != nil || res.Allowed || res.RetryAfter <= 0 || n < 0 || !locked && (res.Reason != hotparam.ReasonLimited || op.Quota.Penalty > 0) {
		return
	}
	d := &denial{
		name: op.Name, key: strings.Clone(op.Key), quota: op.Quota, least: n,
		until: now + min(res.RetryAfter, longest), retry: now + res.RetryAfter, reset: now + res.ResetAfter, decision: res.Decision,
	}
	s.denial.Store(d)
	if s.changes.Load() != changes {
		s.denial.CompareAndSwap(d, nil)
	}
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
