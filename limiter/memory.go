package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Memory is a [Backend] in this process. It is safe for concurrent use. Each key has a lock of
// its own, and an op on a known key allocates nothing. A [Limiter] of a token bucket or a leaky
// bucket, without warm-up, penalty and shaping, takes from it without a lock. A Memory starts
// no goroutine and never blocks, so it ignores contexts.
//
// It holds at most MaxKeys keys, and evicts keys in their initial state as other keys arrive.
// While all its keys are in use, a new key displaces one that will soon owe nothing;
// [Stats].Displaced counts those. The evicted key's debt is kept in less memory, which may report
// more than the key owes but never less: docs/LIMITS.md has the probability.
type Memory struct {
	table *table
	clock func() time.Duration // nil means the wall clock at start, advanced by the monotonic clock
	start time.Time
	epoch time.Duration // start, since the Unix epoch
	grain int64         // time within which takes share a clock reading: see lentWord; 0 with a Clock
	seed  maphash.Seed
	plans plans
}

// MemoryConfig configures a [Memory]. The zero value is valid.
type MemoryConfig struct {
	// MaxKeys is the maximum number of keys held at a time, up to 16,777,216. Zero means
	// DefaultMaxKeys. At most 16 bytes of each of MaxKeys are reserved at once. Each held
	// key takes about 210 bytes, the bytes of key and name if they are over 26 together, and more for a window.
	MaxKeys int
	// Clock returns the time since the Unix epoch. Nil means the wall clock at the time when
	// the Memory is made, advanced by the monotonic clock, which cannot be set.
	Clock func() time.Duration
	// Algorithms holds algorithms of your own, by the names that quotas refer to.
	Algorithms map[rules.Algorithm]Algorithm
}

// DefaultMaxKeys is the default of MemoryConfig.MaxKeys.
const DefaultMaxKeys = 1 << 17

// NewMemory returns a [Memory].
func NewMemory(c MemoryConfig) (*Memory, error) {
	c.MaxKeys = cmp.Or(c.MaxKeys, DefaultMaxKeys)
	for name := range c.Algorithms {
		if !name.Custom() {
			return nil, fmt.Errorf("limiter: algorithm %q: a custom name begins with x_ and has only lower case letters, digits, _ and -", name)
		}
	}
	t, err := newTable(c.MaxKeys)
	if err != nil {
		return nil, err
	}
	m := &Memory{table: t, clock: c.Clock, start: time.Now(), seed: maphash.MakeSeed(), plans: plans{custom: c.Algorithms}}
	m.epoch = time.Duration(m.start.UnixNano())
	if m.clock == nil {
		m.grain = clockGrain
	}
	return m, nil
}

// now returns the time since the Unix epoch by the user's clock. Without one, it returns the
// wall clock's time at the start, advanced by the monotonic clock.
func (m *Memory) now() time.Duration {
	if m.clock != nil {
		return m.clock()
	}
	return m.epoch + time.Since(m.start)
}

var errNoQuota = errors.New("limiter: the quota of an Op is nil")

// Do implements [Backend].
func (m *Memory) Do(_ context.Context, op Op) (r Result, err error) {
	err = m.do(m.now(), &op, &r)
	return r, err
}

// DoAll implements [Batcher]. It executes ops one after the other, at one instant.
func (m *Memory) DoAll(_ context.Context, ops []Op, results []Result) error {
	if len(results) != len(ops) {
		return fmt.Errorf("limiter: %d results for %d ops", len(results), len(ops))
	}
	var errs OpErrors
	now := m.now()
	together := 0
	for i := range ops {
		if results[i] = (Result{}); ops[i].together() {
			together++
			continue
		}
		errs = setError(errs, len(ops), i, m.do(now, &ops[i], &results[i]))
	}
	if together > 0 {
		errs = m.doTogether(now, ops, results, errs)
	}
	return errs.asError()
}

// do executes op and sets r, unless it fails.
func (m *Memory) do(now time.Duration, op *Op, r *Result) (err error) {
	switch {
	case op.Name == "" || op.Key == "":
		return ErrNoKey
	case op.Quota == nil:
		return errNoQuota
	case op.Kind > Forget:
		return fmt.Errorf("limiter: kind %d: %w", op.Kind, ErrUnsupported)
	// An unlimited quota needs no state. A Forget may find one of an earlier quota.
	case op.Quota.Burst == rules.Unlimited && op.Kind != Forget:
		*r = unlimited{}.Do(now, op.Request)
		return nil
	}
	hash := m.hash(m.hashOf(op.Name), op.Key)
	if n := m.table.findNamed(hash, op.Name, op.Key); n != nil {
		found, err := n.kept.do(now, op.Quota, maker{algorithms: &m.plans, table: m.table}, &op.Request, r)
		if found == keyCalm {
			m.table.renew(hash, n, &m.plans)
		}
		if found != keyDropped {
			m.table.tend(now)
			return err
		}
	}
	var short [64]byte
	*r, err = m.table.enter(now, hash, op.Quota, maker{algorithms: &m.plans, key: appendNamed(short[:0], op.Name, op.Key)}, &op.Request)
	return err
}

// findNode returns a key, or nil.
func (m *Memory) findNode(name, key string) *keyNode {
	return m.table.findNamed(m.hash(m.hashOf(name), key), name, key)
}

// hash returns the hash of a key in the table. name is the hash of its name.
func (m *Memory) hash(name uint64, key string) uint64 { return maphash.String(m.seed, key) ^ name }

func (m *Memory) hashOf(name string) uint64 {
	return bits.RotateLeft64(maphash.String(m.seed, name), 23)
}

// Stats returns a snapshot of the counters.
func (m *Memory) Stats() Stats { return m.table.stats() }

// plans caches the algorithms of quotas, so that each is validated and computed once. They are
// found by value, since a caller may make a quota for each call.
type plans struct {
	custom map[rules.Algorithm]Algorithm
	mu     sync.RWMutex // taken only for new keys and changed quotas
	known  map[rules.Quota]Algorithm
}

// maxPlans bounds the cached quotas. When there are more, the cache is emptied.
const maxPlans = 1024

func (p *plans) algorithmFor(q *rules.Quota) (Algorithm, error) {
	p.mu.RLock()
	a := p.known[*q]
	p.mu.RUnlock()
	if a != nil {
		return a, nil
	}
	a, err := NewAlgorithm(q, p.custom)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxPlans {
		p.known = make(map[rules.Quota]Algorithm)
	}
	p.known[*q] = a
	return a, nil
}
