package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam"
)

// Permits are permits in the manner of Redisson's RRateLimiter: one object, whose rate
// is kept with its state. A permit is back one interval after it was taken. Those who
// wait get theirs in the order in which they came, and nobody overtakes them.
//
// It is safe for concurrent use. In memory it is [MemoryPermits]; on Redis, package
// redislimiter has it.
type Permits interface {
	// TrySetRate sets the rate if none is set, and tells whether it did.
	TrySetRate(ctx context.Context, r PermitRate) (bool, error)
	// SetRate sets the rate, and all permits are there again.
	SetRate(ctx context.Context, r PermitRate) error
	// UpdateRate changes the rate; what was taken stays taken, unless PerClient changes.
	// It fails with [ErrRateNotSet] if none is set.
	UpdateRate(ctx context.Context, r PermitRate) error
	// Config is the rate that is set.
	Config(ctx context.Context) (PermitRate, error)

	// TryAcquire takes n permits if there are as many, and tells whether it did. It
	// fails with [ErrRateNotSet], with [ErrNoPermits] for an n below 1, and with
	// [ErrTooManyPermits] for one above the rate; so do the next three.
	TryAcquire(ctx context.Context, n int64) (bool, error)
	// TryAcquireWithin takes n permits, for which it waits if need be. If that would
	// take longer than timeout, the answer is false at once.
	TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error)
	// Acquire takes n permits, for which it waits. It ends with the context, and then
	// has taken nothing.
	Acquire(ctx context.Context, n int64) error
	// Release gives back n permits, those that were taken last; what is not taken is
	// not given back.
	Release(ctx context.Context, n int64) error
	// AvailablePermits is how many there are now.
	AvailablePermits(ctx context.Context) (int64, error)

	// Expire lets the rate and the state go after that time, and tells whether there
	// is a rate.
	Expire(ctx context.Context, after time.Duration) (bool, error)
	// ClearExpire keeps them, and tells whether they would have gone.
	ClearExpire(ctx context.Context) (bool, error)
	// Delete makes them go now, and tells whether there was a rate.
	Delete(ctx context.Context) (bool, error)
}

// PermitRate is how many permits there are, and for whom.
type PermitRate struct {
	Rate      hotparam.Rate
	PerClient bool // each client has its own permits; else all share them
	// KeepAlive is how long rate and state stay without use: none of them is acquired,
	// waited for or released. 0: they stay. Else it is at least Rate.Per.
	KeepAlive time.Duration
}

// Validate tells what is wrong with a rate.
func (r PermitRate) Validate() error {
	switch {
	case r.Rate.N < 1 || r.Rate.Per <= 0 || r.Rate.PerSecond() > hotparam.MaxRate:
		return fmt.Errorf("limiter: %d permits per %v: both must be positive, and at most %d per second", r.Rate.N, r.Rate.Per, hotparam.MaxRate)
	case int64(r.Rate.Per) > maxFill:
		return fmt.Errorf("limiter: permits per %v: at most %v", r.Rate.Per, time.Duration(maxFill))
	case r.KeepAlive != 0 && r.KeepAlive < r.Rate.Per:
		return fmt.Errorf("limiter: permits are kept for %v, less than their interval of %v", r.KeepAlive, r.Rate.Per)
	}
	return nil
}

// Errors of [Permits].
var (
	ErrRateNotSet     = errors.New("limiter: the permits have no rate: set one first")
	ErrTooManyPermits = errors.New("limiter: more permits than the rate has")
	ErrNoPermits      = errors.New("limiter: less than one permit")
)
