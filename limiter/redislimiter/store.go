package redislimiter

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Store keeps the state of limiters in Redis, shared by all users of the same Redis and
// namespace. It is a [limiter.Batcher] for all algorithms but custom ones. It is safe for
// concurrent use, and starts no goroutine.
type Store struct {
	client redis.UniversalClient
	cfg    Config
	plans  plans
	clocks clocks
	name   string // name of the store, unique among stores that charge the same keys
	healed atomic.Uint64
}

// New returns a Store. It connects on first use, and the caller closes the client. It fails
// for a client that ignores the deadlines of contexts.
func New(client redis.UniversalClient, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("redislimiter: %w", err)
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: %w", err)
	}
	return &Store{client: client, cfg: cfg, name: rand.Text()}, nil
}

// StoreStats is a snapshot of the counters of a [Store].
type StoreStats struct {
	// Healed is the number of keys of limits that were of a foreign type and were deleted.
	Healed uint64
}

// Stats returns a snapshot of the counters.
func (s *Store) Stats() StoreStats { return StoreStats{Healed: s.healed.Load()} }

// Do executes op in one round trip. An error reply is a [limiter.OpError], unless the server
// currently refuses all writes. After the deadline, errors.Is matches the error to
// context.DeadlineExceeded.
func (s *Store) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	var results [1]limiter.Result
	if err := limiter.ErrorOf(s.DoAll(ctx, []limiter.Op{op}, results[:]), 0); err != nil {
		return limiter.Result{}, err
	}
	return results[0], nil
}

// parseReply parses the reply of a script.
func (s *Store) parseReply(value any) answer {
	a := readAnswer(value)
	if a.healed > 0 {
		s.healed.Add(uint64(a.healed))
	}
	return a
}

// DoAll executes all of ops in one round trip to each server, with one script for the ops that
// share a tag. In a cluster the masters are asked in parallel. If one is unavailable, its ops
// have errors in a [limiter.OpErrors], as do ops with an error reply; the results of the other
// ops are unaffected.
func (s *Store) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	if len(results) < len(ops) {
		return fmt.Errorf("redislimiter: %d results for %d ops", len(results), len(ops))
	}
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	b := batch{store: s, ops: ops, results: results, plans: make([]*plan, len(ops))}
	return b.do(ctx)
}

// deadline returns ctx with its own deadline, or else the store's.
func (s *Store) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.cfg.Timeout)
}

// plan returns the plan of an op's quota, or an error if the op cannot be executed.
func (s *Store) plan(op *limiter.Op) (*plan, error) {
	if op.Name == "" || op.Key == "" {
		return nil, limiter.ErrNoKey
	}
	if op.Kind > limiter.Forget {
		return nil, fmt.Errorf("%q: kind %d: %w", op.Name, op.Kind, limiter.ErrUnsupported)
	}
	p, err := s.plans.planFor(op.Quota)
	if err != nil {
		return nil, &limiter.OpError{Err: fmt.Errorf("%q: %w", op.Name, err)}
	}
	return p, nil
}

// minSpare is how many ms a state is kept after it has become that of a new key. It is then still
// there if the clock is set back, as after a failover.
const minSpare = 60_000

// head returns the first argument of each script. It packs the time, or -1 for Redis's; the time
// in ms that a state is kept after it has become that of a new key; and the deadline of ctx, or 0.
func (s *Store) head(ctx context.Context, c *clock) any {
	now, spare, till := -1.0, float64(minSpare), 0.0
	if s.cfg.Clock != nil {
		now = float64(s.now(c))
	} else {
		till = c.serverDeadline(ctx)
	}
	if s.cfg.Jitter > 0 {
		spare += float64(mathrand.Int64N(s.cfg.Jitter.Milliseconds() + 1))
	}
	var room [3 * numberSize]byte
	return string(appendNumbers(room[:0], now, spare, till))
}

// now returns the approximate time that a script will see, in µs.
func (s *Store) now(c *clock) int64 {
	if s.cfg.Clock != nil {
		return min(max(s.cfg.Clock().Microseconds(), 0), maxFill)
	}
	return c.now()
}

// unlimited returns the result of an ask under a quota without a limit.
func unlimited(ask *limiter.Request) limiter.Result {
	r := limiter.Result{Decision: rules.Decision{Reason: rules.ReasonLimited, Limit: rules.Unlimited, Remaining: rules.Unlimited}}
	if ask.N < 0 && ask.Kind != limiter.Forget {
		return r
	}
	r.Allowed, r.Reason = true, rules.ReasonWithin
	switch ask.Kind {
	case limiter.Take, limiter.AtMost, limiter.Reserve, limiter.Charge:
		r.Taken = ask.N
	}
	return r
}
