package redislimiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/internal/breaker"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// SemaphoreConfig configures a [Semaphore].
type SemaphoreConfig struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Name is stored in Redis with the permits of this process, to identify it to people. At most
	// 128 bytes without spaces. Default "-".
	Name string
	// Lease is how long permits stay taken without being renewed. The permits of a crashed
	// process are free after it. Default 10 s; 300 ms to 10 min.
	Lease time.Duration
	// Timeout bounds each call to Redis on the request path. Default 50 ms.
	Timeout time.Duration
	// Retry is the time before a server that failed is probed. It grows to four times that while
	// the server stays unavailable. Until then calls to it fail at once. Default 250 ms.
	Retry time.Duration
	// Logger gets one line when an outage of a server begins and one when it ends, at most one
	// such pair a minute, and one line for lost leases. Default: discard.
	Logger *slog.Logger
}

func (c SemaphoreConfig) withDefaults() SemaphoreConfig {
	c.Name = cmp.Or(c.Name, "-")
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Retry = cmp.Or(c.Retry, defaultRetry)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// maxLease is repeated in lua/semaphore_acquire.lua.
const maxLease = 10 * time.Minute

func (c SemaphoreConfig) validate() error {
	switch {
	case !rules.ValidNamespace(c.Namespace):
		return fmt.Errorf("SemaphoreConfig.Namespace %q: want one or more of A-Z a-z 0-9 _ -", c.Namespace)
	case len(c.Name) > 128 || hasSpace(c.Name):
		return fmt.Errorf("SemaphoreConfig.Name %.32q: want at most 128 bytes without spaces", c.Name)
	case c.Lease < 300*time.Millisecond || c.Lease > maxLease:
		return fmt.Errorf("SemaphoreConfig.Lease %v: want 300ms to %v", c.Lease, maxLease)
	case c.Timeout < 0 || c.Retry < 0:
		return fmt.Errorf("SemaphoreConfig.Timeout %v and Retry %v must not be negative", c.Timeout, c.Retry)
	}
	return nil
}

func hasSpace(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' {
			return true
		}
	}
	return false
}

// Semaphore bounds how many requests of a key are in flight over all instances. It is a
// [semaphore.Acquirer] whose permits are leases in Redis, renewed by Run. If a process crashes or
// is cut off, its permits are free after SemaphoreConfig.Lease. It is safe for concurrent use.
//
// Acquire and Release cost one round trip each. While Run is in progress, asks that set Keep leave
// their leases to this process's next request instead, until other processes want permits. Waiters
// queue in their process, by class and then by arrival, up to the ask's Queue; only the first one
// asks Redis. When a permit is released, a message on a channel wakes the process that has waited
// longest, so processes are served in order. If the message is lost, the first waiter asks within
// half a second anyway.
//
// The Lost channel of a lease reports that its permits may have been granted to another caller.
//
// The client needs the rights evalsha, eval, time, zadd, zrem, zcard, zscore, zrange,
// zrangebyscore, zremrangebyscore, pexpire, pttl, publish, subscribe and ping, for the
// keys hotparam:{namespace/…}:semaphore, …:semaphore:waiting and …:semaphore:denied and the channel
// hotparam:{namespace}:released.
type Semaphore struct {
	cfg     SemaphoreConfig
	client  redis.UniversalClient
	process string // name/incarnation
	channel string
	gate    *gate

	hearing atomic.Bool  // whether hints arrive, so that the first waiter need ask only seldom
	hold    atomic.Int64 // moving average of the time that leases are held, in nanoseconds
	seq     atomic.Uint64

	stripes  [semaphoreStripes]semaphoreStripe
	keeping  atomic.Bool   // whether leases are kept: Run looks after them
	keepsKey chan struct{} // signals that a key keeps leases; of capacity 1

	mu   sync.Mutex
	held map[*heldLease]struct{} // includes kept ones
	// owed holds leases that Redis may still have although no one holds them, because a Release
	// or an Acquire was not answered. Run releases them. maxOwed bounds them, which is safe since
	// leases expire.
	owed  map[*heldLease]struct{}
	stats SemaphoreStats
}

const maxOwed = 100_000

// SemaphoreStats is a snapshot of this process's leases and counters.
type SemaphoreStats struct {
	Held    int // leases of requests
	Spare   int // leases that finished requests left to the next ones
	Waiting int // waiters of this process
	Owed    int // leases to release as soon as Redis answers

	Granted  uint64
	Reused   uint64 // grants without a call, of leases that finished requests left
	Denied   uint64
	Lost     uint64 // leases that could not be renewed in time, or that Redis had lost
	Expired  uint64 // expired leases of crashed holders, of any process, that were dropped
	Failures uint64 // calls to Redis that failed
	Refused  uint64 // calls that were not made because Redis was unavailable
	Healed   uint64 // keys of a foreign type that were deleted
}

var _ semaphore.Acquirer = (*Semaphore)(nil)

// NewSemaphore returns a Semaphore. The caller calls Run and closes the client, whose options
// must have ContextTimeoutEnabled.
func NewSemaphore(client redis.UniversalClient, c SemaphoreConfig) (*Semaphore, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: semaphore: %w", err)
	}
	s := &Semaphore{
		cfg:     c,
		client:  client,
		process: c.Name + "/" + incarnation(),
		channel: "hotparam:{" + c.Namespace + "}:released",
		held:    make(map[*heldLease]struct{}),
		owed:    make(map[*heldLease]struct{}),

		keepsKey: make(chan struct{}, 1),
	}
	s.gate = newGate(client, c.Timeout, breaker.Config[string]{
		Min: c.Retry, Logger: c.Logger,
		Begun: "semaphore: Redis does not answer: leases are kept as long as they last", Over: "semaphore: Redis answers again",
	})
	return s, nil
}

// Stats returns a snapshot.
func (s *Semaphore) Stats() SemaphoreStats {
	s.mu.Lock()
	stats, held := s.stats, len(s.held)
	stats.Owed = len(s.owed)
	s.mu.Unlock()
	for i := range s.stripes {
		s.stripes[i].addTo(&stats)
	}
	stats.Granted += stats.Reused
	stats.Held = max(held-stats.Spare, 0)
	return stats
}

// Acquire implements [semaphore.Acquirer]. It returns an error if Redis does not answer; the
// outcome is then unknown. It returns [ErrUnavailable] if Redis was not asked. RetryAfter is
// estimated from the time that this process's leases are held.
func (s *Semaphore) Acquire(ctx context.Context, key string, ask semaphore.Request) (semaphore.Lease, rules.Decision, error) {
	switch {
	case key == "":
		return semaphore.Lease{}, rules.Decision{}, limiter.ErrNoKey
	case ask.Permits < 1 || ask.Permits > maxPermits:
		return semaphore.Lease{}, rules.Decision{}, fmt.Errorf("redislimiter: semaphore of %d permits: must be 1 to %d", ask.Permits, int64(maxPermits))
	}
	if err := ctx.Err(); err != nil {
		return semaphore.Lease{}, rules.Decision{}, err
	}
	if ask.Keep {
		if lease, d, taken := s.acquireKept(key, ask.Permits); taken {
			return lease, d, nil
		}
	}
	w := &waiter{
		key:      semaphoreKey(s.cfg.Namespace, key),
		keeps:    ask.Keep,
		class:    min(max(ask.Class, 0), rules.MaxClasses-1),
		maxQueue: ask.Queue,
		seq:      s.seq.Add(1),
	}
	if ask.Within > 0 && ask.Queue > 0 {
		w.until, w.wake = time.Now().Add(ask.Within), make(chan struct{}, 1)
	}
	lease, d, err := s.acquire(ctx, w, ask.Permits)
	if err != nil {
		return semaphore.Lease{}, rules.Decision{}, err
	}
	if lease == nil {
		return semaphore.Lease{}, d, nil
	}
	return semaphore.NewLease(lease, lease.use), d, nil
}

// maxPermits keeps the numbers of the scripts, which are float64, exact.
const maxPermits = 1 << 40

func (s *Semaphore) acquire(ctx context.Context, w *waiter, permits int64) (*heldLease, rules.Decision, error) {
	pause := s.cfg.Lease // a waiter that is not the first does not ask
	switch s.enter(w, permits) {
	case entryDenied:
		return nil, s.denial(w, permits, 0), nil
	case entryFirst:
		got, err := s.askRedis(ctx, w, permits)
		switch {
		case err != nil:
			return nil, rules.Decision{}, err
		case got.lease != nil:
			return got.lease, got.decision(), nil
		}
		spare, waits := s.addWaiter(w, permits)
		switch {
		case spare != nil:
			return spare, s.keptDecision(spare), nil
		case !waits:
			return nil, s.denial(w, permits, got.free()), nil
		}
		pause = s.pause(w, got)
	case entryWaits:
	}
	return s.wait(ctx, w, pause)
}

// denial returns a denial. Its RetryAfter assumes that as many waiters work at a time as there are
// permits.
func (s *Semaphore) denial(w *waiter, permits, free int64) rules.Decision {
	s.count(func(stats *SemaphoreStats) { stats.Denied++ })
	d := rules.Decision{Reason: rules.ReasonBusy, Limit: permits, Remaining: free}
	before := 1 + float64(s.stripe(w.key).waiting(w.key))
	wait := float64(s.hold.Load()) * before / float64(permits)
	d.RetryAfter = time.Duration(min(max(wait, float64(time.Millisecond)), float64(time.Hour)))
	return d
}

// ErrUnavailable is returned if Redis was not asked because it did not answer shortly before.
var ErrUnavailable = errors.New("redislimiter: Redis is unavailable, and is not asked until a probe succeeds")

// newLease returns a lease that is not held yet.
func (s *Semaphore) newLease(key string, start time.Time) *heldLease {
	l := &heldLease{
		semaphore: s,
		key:       key,
		member:    s.process + "/" + strconv.FormatUint(s.seq.Add(1), 36),
		granted:   start,
		since:     start,
		lost:      make(chan struct{}),
	}
	until := start.Add(s.cfg.Lease)
	l.until.Store(&until)
	return l
}
