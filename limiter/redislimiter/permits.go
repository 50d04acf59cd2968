package redislimiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter/internal/breaker"
	"github.com/hotparam/hotparam/limiter/internal/permitline"
	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/rules"
)

// PermitsConfig configures [NewPermits].
type PermitsConfig struct {
	// Namespace keeps fleets apart: [A-Za-z0-9_-]+. Required.
	Namespace string
	// Name is the name of the object, any bytes. Required.
	Name string
	// Client identifies the client whose permits are counted if the rate is PerClient, any bytes.
	// By default each NewPermits is a separate client.
	Client string
	// Timeout bounds each call to Redis. Default 50 ms.
	Timeout time.Duration
	// Retry is the time before a server that failed is probed by a call. It grows to four times
	// that while the server stays unavailable. Until then calls fail at once. Default 250 ms.
	Retry time.Duration
}

func (c PermitsConfig) withDefaults() PermitsConfig {
	c.Client = cmp.Or(c.Client, incarnation())
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Retry = cmp.Or(c.Retry, defaultRetry)
	return c
}

func (c PermitsConfig) validate() error {
	switch {
	case !rules.ValidNamespace(c.Namespace):
		return fmt.Errorf("PermitsConfig.Namespace %q: want one or more of A-Z a-z 0-9 _ -", c.Namespace)
	case c.Name == "":
		return errors.New("PermitsConfig.Name is empty")
	case c.Timeout < 0 || c.Retry < 0:
		return fmt.Errorf("PermitsConfig.Timeout %v and Retry %v must not be negative", c.Timeout, c.Retry)
	}
	return nil
}

// sharedPermits implements [permits.RateLimiter] on Redis.
type sharedPermits struct {
	cfg    PermitsConfig
	client redis.UniversalClient
	keys   []string // keys of the rate, of all clients' takes together, and of this client's takes
	id     string   // identifies takes by this value, even among values with the same Client
	taken  atomic.Uint64
	gate   *gate

	line permitline.Line
}

// maxPermitRate keeps the sums of the scripts, which are float64, exact.
const maxPermitRate = 1 << 50

// NewPermits returns a view of one [permits.RateLimiter], like Redisson's RRateLimiter, that all
// instances share, timed by Redis's clock. SetRate or TrySetRate creates it. Waiters queue in
// their process, and only the first one asks Redis, when its permits are due; there is no order
// between processes. It starts no goroutine. The caller closes the client, whose options must
// have ContextTimeoutEnabled.
//
// Rates and intervals are exact to a microsecond. Each acquisition is an entry of some 100 bytes
// in Redis for one interval. Beyond 1,000 entries, acquisitions within a thousandth of the interval
// share an entry, which expires with the last of them. So an object, or with PerClient each client,
// has at most 2,000 entries, and no call takes Redis longer for 100,000 permits than for 1,000. The
// rate's hash expires only if Expire or KeepAlive has set
// that. A state that was evicted or otherwise lost is that of a new object; without the hash no
// rate is set.
//
// After an error the outcome is unknown. If Redis granted permits nevertheless, they are released
// once it answers again, unless their entry was merged with others. All of them are available
// again after an interval.
//
// The client needs the rights evalsha, eval, time, hmget, hset, del, exists, zadd, zrange,
// zrangebyscore, zrevrangebyscore, zincrby, zrem, zscore, pexpire, pttl and persist, for the key
// hotparam:{namespace/…}:permits and all keys with the prefix
// hotparam:{namespace/…}:permits:taken.
//
// UpdateRate with PerClient and a longer interval remembers takes of other clients only for the
// interval that was in force when they were made. Expire expires takes with a rate that all
// clients share, and otherwise an interval and a minute after the last take; the minute is for a
// clock of Redis that is set back. After Delete, takes of other clients no longer count, since
// they belong to the deleted rate, and they expire.
func NewPermits(client redis.UniversalClient, c PermitsConfig) (permits.RateLimiter, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := checkClient(client); err != nil {
		return nil, fmt.Errorf("redislimiter: permits: %w", err)
	}
	key := redisKey(c.Namespace, hashOf("permits", c.Name)) + ":permits"
	p := &sharedPermits{
		cfg:    c,
		client: client,
		keys:   []string{key, key + ":taken", key + ":taken:" + hashOf(c.Client)},
		id:     incarnation(),
		gate:   newGate(client, c.Timeout, breaker.Config[string]{Min: c.Retry, Logger: slog.New(slog.DiscardHandler)}),
	}
	p.line.Take, p.line.Recheck = p.takePermits, permitsRecheck
	return p, nil
}

// permitsRecheck is the longest time between two asks of the first waiter, since others may
// release permits or change the rate.
const permitsRecheck = time.Second

func (p *sharedPermits) TryAcquire(ctx context.Context, n int64) (bool, error) {
	return p.TryAcquireWithin(ctx, n, 0)
}

func (p *sharedPermits) TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error) {
	return p.line.Acquire(ctx, "", n, timeout)
}

func (p *sharedPermits) Acquire(ctx context.Context, n int64) error {
	_, err := p.TryAcquireWithin(ctx, n, math.MaxInt64)
	return err
}

func (p *sharedPermits) TrySetRate(ctx context.Context, r permits.Rate) (bool, error) {
	return p.storeRate(ctx, "try", r)
}

func (p *sharedPermits) SetRate(ctx context.Context, r permits.Rate) error {
	_, err := p.storeRate(ctx, "set", r)
	return err
}

func (p *sharedPermits) UpdateRate(ctx context.Context, r permits.Rate) error {
	done, err := p.storeRate(ctx, "update", r)
	if err == nil && !done {
		return permits.ErrRateNotSet
	}
	return err
}

func (p *sharedPermits) storeRate(ctx context.Context, how string, r permits.Rate) (bool, error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	if r.Rate.N > maxPermitRate {
		return false, fmt.Errorf("redislimiter: %d permits: at most %d", r.Rate.N, int64(maxPermitRate))
	}
	client := 0
	if r.PerClient {
		client = 1
	}
	// The script counts by the interval in microseconds, and Config reads the interval as given.
	interval, keep, given := ceil(r.Rate.Per, time.Microsecond), ceil(r.KeepAlive, time.Millisecond), int64(r.Rate.Per)
	done, err := p.runScript(ctx, permitsSet, how, r.Rate.N, interval, client, keep, given).Int64()
	if err != nil {
		return false, p.wrapError("set the rate", err)
	}
	p.line.Wake(false)
	return done == 1, nil
}

// ceil returns d in units, rounded up.
func ceil(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

func (p *sharedPermits) Config(ctx context.Context) (permits.Rate, error) {
	fields, err := p.runScript(ctx, permitsConfig).StringSlice()
	if err != nil {
		return permits.Rate{}, p.wrapError("read the rate", err)
	}
	return permitRateOf(fields)
}

// permitRateOf parses the rate's hash.
func permitRateOf(fields []string) (permits.Rate, error) {
	if len(fields) != 4 {
		return permits.Rate{}, permits.ErrRateNotSet
	}
	n, errN := strconv.ParseInt(fields[0], 10, 64)
	per, errPer := strconv.ParseInt(fields[1], 10, 64)
	keep, errKeep := strconv.ParseInt(fields[3], 10, 64)
	if errN != nil || errPer != nil || errKeep != nil || keep < 0 || keep > math.MaxInt64/int64(time.Millisecond) {
		return permits.Rate{}, fmt.Errorf("redislimiter: the rate in Redis cannot be read: %q", fields)
	}
	r := permits.Rate{
		Rate:      rules.Rate{N: n, Per: time.Duration(per)},
		PerClient: fields[2] == "1",
		KeepAlive: time.Duration(keep) * time.Millisecond,
	}
	if err := r.Validate(); err != nil {
		return permits.Rate{}, fmt.Errorf("redislimiter: the rate in Redis is invalid: %w", err)
	}
	return r, nil
}

func (p *sharedPermits) Release(ctx context.Context, n int64) error {
	if n < 1 {
		return permits.ErrNone
	}
	back, err := p.runScript(ctx, permitsRelease, min(n, maxPermitRate), "").Int64()
	switch {
	case err != nil:
		return p.wrapError("release permits", err)
	case back < 0:
		return permits.ErrRateNotSet
	}
	p.line.Wake(false)
	return nil
}

func (p *sharedPermits) AvailablePermits(ctx context.Context) (int64, error) {
	n, err := p.runScript(ctx, permitsAvailable).Int64()
	switch {
	case err != nil:
		return 0, p.wrapError("count permits", err)
	case n < 0:
		return 0, permits.ErrRateNotSet
	}
	return n, nil
}

func (p *sharedPermits) Expire(ctx context.Context, after time.Duration) (bool, error) {
	done, err := p.runScript(ctx, permitsExpire, ceil(max(after, 0), time.Millisecond)).Int64()
	return done == 1, p.wrapError("expire", err)
}

func (p *sharedPermits) ClearExpire(ctx context.Context) (bool, error) {
	done, err := p.runScript(ctx, permitsExpire, "").Int64()
	return done == 1, p.wrapError("clear the expiry", err)
}

func (p *sharedPermits) Delete(ctx context.Context) (bool, error) {
	done, err := p.runScript(ctx, permitsDelete).Int64()
	if err == nil {
		p.line.Wake(false)
	}
	return done == 1, p.wrapError("delete", err)
}

func (p *sharedPermits) wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redislimiter: permits: %s: %w", what, err)
}
