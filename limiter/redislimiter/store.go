package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// Store is limiters whose state is in Redis, so that all who use the same Redis and
// namespace share them. It is a [limiter.Batcher] for all algorithms but custom ones.
// It is safe for concurrent use, and starts nothing.
type Store struct {
	client redis.UniversalClient
	cfg    Config
	plans  plans
	// ahead is by how much Redis's clock is ahead of ours, in µs, as last seen: it only
	// says which periods of a calendar are told.
	ahead  atomic.Int64
	healed atomic.Uint64
}

// New makes a store. It connects on first use; the client stays the caller's, who
// closes it. It fails for a client that does not keep to the deadlines of contexts.
func New(client redis.UniversalClient, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("redislimiter: %w", err)
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: %w", err)
	}
	return &Store{client: client, cfg: cfg}, nil
}

// StoreStats tells how a [Store] fares.
type StoreStats struct {
	// Healed is how many keys of limits were of a foreign type, and are as new since.
	Healed uint64
}

// Stats is a snapshot of the counters.
func (s *Store) Stats() StoreStats { return StoreStats{Healed: s.healed.Load()} }

// Do asks for one key: one round trip. An error that Redis answered is a
// [limiter.OpError], unless the server says that it does not write at all now. An error
// after the deadline is context.DeadlineExceeded for errors.Is.
func (s *Store) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	r, err := s.one(ctx, &op)
	if err != nil {
		return limiter.Result{}, fmt.Errorf("redislimiter: %w", err)
	}
	return r, nil
}

// one is what a batch does, for one op, and without what many need.
func (s *Store) one(ctx context.Context, op *limiter.Op) (limiter.Result, error) {
	p, err := s.plan(op)
	if err != nil {
		return limiter.Result{}, err
	}
	if p.script == nil {
		return unlimited(&op.Ask), nil
	}
	base, _ := s.keyName(op.Name, op.Key)
	var room [3]string
	keys := p.appendKeys(room[:0], base, op.Kind)
	about := s.now()
	for range maxTries {
		c := call{script: p.script, keys: keys, args: []any{s.head(), p.asked(&op.Ask, about)}}
		if err := run(ctx, s.client, &c); err != nil {
			return limiter.Result{}, wrong(ctx, err)
		}
		told := s.read(c.cmd.Val())
		answer, now, err := readReply(told.packed, 1)
		if err != nil {
			return limiter.Result{}, &limiter.OpError{Err: err}
		}
		s.saw(now)
		result, asks, again, err := answer.result(0, now, p.limit)
		switch {
		case errors.Is(err, errFailed):
			return limiter.Result{}, wrong(ctx, told.failure())
		case err != nil:
			return limiter.Result{}, &limiter.OpError{Err: err}
		case !again:
			return result, nil
		}
		about = asks
	}
	return limiter.Result{}, &limiter.OpError{Err: errClock}
}

// read reads what a script said.
func (s *Store) read(value any) answer {
	told := readAnswer(value)
	if told.healed > 0 {
		s.healed.Add(uint64(told.healed))
	}
	return told
}

// DoAll asks for all of ops: one round trip to one server, and one script for those
// that share a tag. In a cluster each master that has some is asked at the same time, and
// one that is away takes none of the others' answers: its ops have errors in a
// [limiter.OpErrors], as those have that Redis answered with one.
func (s *Store) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	if len(results) < len(ops) {
		return fmt.Errorf("redislimiter: %d results for %d ops", len(results), len(ops))
	}
	ctx, cancel := s.deadline(ctx)
	defer cancel()
	b := batch{store: s, ops: ops, results: results, plans: make([]*plan, len(ops))}
	return b.do(ctx)
}

// deadline is ctx with a deadline: its own, else the store's.
func (s *Store) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.cfg.Timeout)
}

// plan is that of an op's quota, if the op can be asked for.
func (s *Store) plan(op *limiter.Op) (*plan, error) {
	if op.Name == "" || op.Key == "" {
		return nil, limiter.ErrNoKey
	}
	if op.Kind > limiter.Forget {
		return nil, fmt.Errorf("%q: kind %d: %w", op.Name, op.Kind, limiter.ErrUnsupported)
	}
	p, err := s.plans.get(op.Quota)
	if err != nil {
		return nil, &limiter.OpError{Err: fmt.Errorf("%q: %w", op.Name, err)}
	}
	return p, nil
}

// minSpare is for how long a state is kept after it is as new, in ms: a clock that goes
// back, as after a failover, finds what was taken.
const minSpare = 60_000

// head is what each script is told first: the time, -1 for Redis's, and for how long a
// state is kept after it is as new.
func (s *Store) head() any {
	if s.cfg.Clock == nil && s.cfg.Jitter == 0 {
		return plainHead
	}
	clock, spare := -1.0, float64(minSpare)
	if s.cfg.Clock != nil {
		clock = float64(s.now())
	}
	if s.cfg.Jitter > 0 {
		spare += float64(rand.Int64N(s.cfg.Jitter.Milliseconds() + 1))
	}
	return string(appendNumbers(nil, clock, spare))
}

var plainHead any = string(appendNumbers(nil, -1, minSpare))

// now is about the time that a script will see, in µs.
func (s *Store) now() int64 {
	if s.cfg.Clock != nil {
		return min(max(s.cfg.Clock().Microseconds(), 0), maxFill)
	}
	return time.Now().UnixMicro() + s.ahead.Load()
}

// saw notes what time a script saw.
func (s *Store) saw(now int64) {
	if s.cfg.Clock == nil {
		s.ahead.Store(now - time.Now().UnixMicro())
	}
}

// unlimited is what a quota without a limit answers.
func unlimited(ask *limiter.Ask) limiter.Result {
	r := limiter.Result{Decision: hotparam.Decision{Reason: hotparam.ReasonLimited, Limit: hotparam.Unlimited, Remaining: hotparam.Unlimited}}
	if ask.N < 0 && ask.Kind != limiter.Forget {
		return r
	}
	r.Allowed, r.Reason = true, hotparam.ReasonWithin
	switch ask.Kind {
	case limiter.Take, limiter.AtMost, limiter.Reserve, limiter.Charge:
		r.Taken = ask.N
	}
	return r
}
