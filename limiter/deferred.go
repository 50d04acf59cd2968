package limiter

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// DeferredConfig configures a [Deferred]. The zero value is valid.
type DeferredConfig struct {
	// Every is the time between two refreshes, 1 ms to 10 s. Zero means DefaultEvery.
	Every time.Duration
	// Keys is the number of keys that are known at a time. For other keys the backend is asked
	// at each request. Zero means DefaultDeferredKeys.
	Keys int
}

// Defaults of a [DeferredConfig].
const (
	DefaultEvery        = 100 * time.Millisecond
	DefaultDeferredKeys = 1 << 16
)

// stale is after how many refreshes the state of a key is no longer used.
const stale = 4

// Deferred is a backend that decides by what its backend last reported to remain of a key, and
// charges the backend in the background for what it allowed: all keys in one call, each Every.
// It asks the backend at once for an unknown key, and when the known remainder is used up or
// older than four times Every, so it never denies by itself, and saves nothing of what is asked
// beyond the limit. It is for limits for which a
// round trip at each request costs more than some requests over the limit.
//
// Its bound: a single instance admits what the quota allows. Of n instances each may take what
// remains before it learns of the others: at most n − 1 times what one takes within four times
// Every, and at most n − 1 bursts, pass beyond the quota. All of it is charged, so buckets
// admit less afterwards, by as much. Charges in flight when the backend fails are not
// repeated, and counted as lost.
//
// A Reserve, a Forget, what takes nothing, and all asks of quotas that shape go straight to
// the backend. A Return goes to the charge of its take. If that was more than four charges of
// the key ago, a bucket still gets back what it has not earned since; a window does not, and
// DeferredStats.Kept counts it.
//
// It is safe for concurrent use, and a [Batcher]. It goes around a [Failover] or inside one.
// Around it, what passed while the backend was away is charged to the Failover's local
// backend.
type Deferred struct {
	around
	every   time.Duration
	max     int64
	seed    maphash.Seed
	began   time.Time
	shards  [64]deferredShard
	held    atomic.Int64
	batches atomic.Int64 // batches begun, of all keys

	local, lost, kept atomic.Uint64
}

type deferredShard struct {
	mu   sync.Mutex
	keys map[deferredKey]*deferredState
}

type deferredKey struct{ name, key string }

var (
	_ Batcher   = (*Deferred)(nil)
	_ Clustered = (*Deferred)(nil)
)

// NewDeferred returns a Deferred around backend. Its Run charges what was allowed; without
// Run, backend is asked for each key every four times Every.
func NewDeferred(backend Backend, cfg DeferredConfig) (*Deferred, error) {
	if cfg.Every == 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.Keys == 0 {
		cfg.Keys = DefaultDeferredKeys
	}
	switch {
	case backend == nil:
		return nil, errors.New("limiter: NewDeferred: no backend")
	case cfg.Every < time.Millisecond || cfg.Every > 10*time.Second:
		return nil, fmt.Errorf("limiter: DeferredConfig.Every %v: must be 1ms to 10s", cfg.Every)
	case cfg.Keys < 1 || cfg.Keys > maxMaxKeys:
		return nil, fmt.Errorf("limiter: DeferredConfig.Keys %d: must be 1 to %d", cfg.Keys, maxMaxKeys)
	}
	d := &Deferred{around: aroundOf(backend), every: cfg.Every, max: int64(cfg.Keys), seed: maphash.MakeSeed(), began: time.Now()}
	for i := range d.shards {
		d.shards[i].keys = make(map[deferredKey]*deferredState)
	}
	return d, nil
}

// Do implements [Backend].
func (d *Deferred) Do(ctx context.Context, op Op) (Result, error) {
	if op.Name == "" || op.Key == "" {
		return Result{}, ErrNoKey
	}
	a := deferredAsk{now: time.Now()}
	a.step, a.op = stepOf(op)
	if res, ok := d.decide(&a); ok {
		return res, nil
	}
	var results [1]Result
	err := d.send(ctx, []deferredAsk{a}, results[:])
	return results[0], ErrorOf(err, 0)
}

// DoAll implements [Batcher].
func (d *Deferred) DoAll(ctx context.Context, ops []Op, results []Result) error {
	for i := range ops {
		if ops[i].Name == "" || ops[i].Key == "" {
			return ErrNoKey
		}
	}
	now, asked := time.Now(), false // asked: what is Together, unless all of it can be decided here
	for i := range ops {
		asked = asked || ops[i].together() && !d.has(&ops[i], now)
	}
	var asks []deferredAsk
	for i := range ops {
		a := deferredAsk{now: now, place: i, asked: asked && ops[i].together()}
		a.step, a.op = stepOf(ops[i])
		if res, ok := d.decide(&a); ok {
			results[i] = res
		} else {
			asks = append(asks, a)
		}
	}
	if len(asks) == 0 {
		return nil
	}
	return d.send(ctx, asks, results)
}

// deferredAsk is an op that the backend has to decide.
type deferredAsk struct {
	op      Op
	step    path           // of a Return: which backend the permits were taken from
	place   int            // of its result
	asked   bool           // of the backend, whatever is known here
	state   *deferredState // of its key; nil if the answer is not recorded
	charged int64          // what was taken before, which is charged ahead of the op
	flying  int64          // the part of the state's flying that this op charges
	batch   int64          // its name
	now     time.Time
}

// decide decides an ask, or prepares it to be sent.
func (d *Deferred) decide(a *deferredAsk) (Result, bool) {
	op := &a.op
	if op.Quota == nil || op.Quota.Shape || op.Quota.Burst == rules.Unlimited || op.N < 1 && op.Kind != Forget {
		return Result{}, false
	}
	if op.Kind == Return && a.step != pathHere {
		return Result{}, false
	}
	s := d.lock(op)
	if s == nil {
		if op.Kind == Return {
			return d.giveBackOld(a)
		}
		return Result{}, false
	}
	defer s.mu.Unlock()
	known := s.knows(op.Quota, a.now, stale*d.every)
	switch op.Kind {
	case Forget:
		s.at, s.unsent = time.Time{}, 0
		return Result{}, false
	case Return:
		return d.giveBack(s, a)
	case Charge:
		if known {
			d.local.Add(1)
			return d.take(s, min(op.N, maxUnsent), a.now), true
		}
	case Take, AtMost, Peek:
		if a.asked || !known || !s.has(op) {
			break
		}
		d.local.Add(1)
		if op.Kind == Peek {
			return s.result(a.now), true
		}
		return d.take(s, op.N, a.now), true
	}
	a.state = s
	a.charged, a.batch = s.fly()
	a.flying = a.charged
	return Result{}, false
}

// has reports whether a take of op can be decided here.
func (d *Deferred) has(op *Op, now time.Time) bool {
	if op.Quota == nil || op.Quota.Shape || op.Quota.Burst == rules.Unlimited || op.N < 1 || op.Kind > AtMost {
		return false
	}
	s := d.lock(op)
	if s == nil {
		return false
	}
	defer s.mu.Unlock()
	return s.knows(op.Quota, now, stale*d.every) && s.has(op)
}

// lock returns the state of a key, locked, or nil if there is no room for it.
func (d *Deferred) lock(op *Op) *deferredState {
	key := deferredKey{op.Name, op.Key}
	sh := &d.shards[(maphash.String(d.seed, op.Key)^bits.RotateLeft64(maphash.String(d.seed, op.Name), 32))%uint64(len(d.shards))]
	for {
		sh.mu.Lock()
		s := sh.keys[key]
		if s == nil {
			if d.held.Add(1) > d.max {
				d.held.Add(-1)
				sh.mu.Unlock()
				return nil
			}
			s = &deferredState{}
			sh.keys[deferredKey{op.Name, strings.Clone(op.Key)}] = s
		}
		sh.mu.Unlock()
		s.mu.Lock()
		if !s.gone {
			return s
		}
		s.mu.Unlock()
	}
}

// take takes n of what is left.
func (d *Deferred) take(s *deferredState, n int64, now time.Time) Result {
	if s.batch == 0 {
		s.batch = d.batches.Add(1)
	}
	s.left = max(s.left-n, -maxUnsent)
	s.unsent = min(s.unsent+n, maxUnsent)
	res := s.result(now)
	res.Taken, res.Mark = n, s.batch
	res.Receipt = Receipt{At: d.since(now), path: path(0).via(pathHere)}
	return res
}

// since returns the time for the Receipt of what was taken here.
func (d *Deferred) since(now time.Time) time.Duration { return now.Sub(d.began) }

// DeferredStats counts the asks and permits of a [Deferred].
type DeferredStats struct {
	Keys  int64  // known keys
	Local uint64 // asks that were decided here
	Lost  uint64 // permits that passed and could not be charged
	Kept  uint64 // permits that were returned here and not to the backend
}

// Stats returns a snapshot of the counters.
func (d *Deferred) Stats() DeferredStats {
	return DeferredStats{Keys: d.held.Load(), Local: d.local.Load(), Lost: d.lost.Load(), Kept: d.kept.Load()}
}
