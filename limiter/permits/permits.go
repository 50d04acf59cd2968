package permits

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/limiter/internal/permitline"
	"github.com/hotparam/hotparam/rules"
)

// RateLimiter is an object like Redisson's RRateLimiter: its rate is stored with its state. A
// permit becomes available again one interval after it was taken. Waiting callers get their
// permits in the order of arrival, and are never overtaken.
//
// It is safe for concurrent use. [New] keeps it in this process; redislimiter.NewPermits keeps
// it on Redis.
type RateLimiter interface {
	// TrySetRate sets the rate if none is set, and reports whether it did.
	TrySetRate(ctx context.Context, r Rate) (bool, error)
	// SetRate sets the rate and makes all permits available.
	SetRate(ctx context.Context, r Rate) error
	// UpdateRate changes the rate. Permits stay taken, unless PerClient changes. It fails with
	// [ErrRateNotSet] if none is set.
	UpdateRate(ctx context.Context, r Rate) error
	// Config returns the rate.
	Config(ctx context.Context) (Rate, error)

	// TryAcquire takes n permits if they are available, and reports whether it did. It fails
	// with [ErrRateNotSet], with [ErrNone] for an n below 1, and with [ErrTooMany] for one
	// above the rate; so do the next three.
	TryAcquire(ctx context.Context, n int64) (bool, error)
	// TryAcquireWithin takes n permits, and waits for them if needed. If that would take longer
	// than timeout, it returns false at once.
	TryAcquireWithin(ctx context.Context, n int64, timeout time.Duration) (bool, error)
	// Acquire takes n permits, and waits for them if needed. If the context ends first, it has
	// taken nothing.
	Acquire(ctx context.Context, n int64) error
	// Release returns the n permits that were taken last, or all taken permits if there are
	// fewer.
	Release(ctx context.Context, n int64) error
	// AvailablePermits returns the number of available permits.
	AvailablePermits(ctx context.Context) (int64, error)

	// Expire makes the rate and the state expire after that time, and reports whether there is
	// a rate.
	Expire(ctx context.Context, after time.Duration) (bool, error)
	// ClearExpire removes the expiry, and reports whether there was one.
	ClearExpire(ctx context.Context) (bool, error)
	// Delete removes the rate and the state, and reports whether there was a rate.
	Delete(ctx context.Context) (bool, error)
}

// Rate is a number of permits in an interval, for all clients or for each.
type Rate struct {
	Rate      rules.Rate
	PerClient bool // each client has its own permits, rather than all sharing them
	// KeepAlive is the time for which rate and state are kept without use. Acquiring, waiting
	// and releasing are uses. Zero means forever; otherwise it is at least Rate.Per.
	KeepAlive time.Duration
}

// Validate returns an error if a field of r is out of range.
func (r Rate) Validate() error {
	switch {
	case r.Rate.N < 1 || r.Rate.Per <= 0 || r.Rate.PerSecond() > rules.MaxRate:
		return fmt.Errorf("permits: %d per %v: both must be positive, and at most %d per second", r.Rate.N, r.Rate.Per, rules.MaxRate)
	case r.Rate.Per > longest:
		return fmt.Errorf("permits: a rate per %v: at most %v", r.Rate.Per, longest)
	case r.KeepAlive != 0 && r.KeepAlive < r.Rate.Per:
		return fmt.Errorf("permits: kept for %v, less than their interval of %v", r.KeepAlive, r.Rate.Per)
	}
	return nil
}

// longest is the longest interval of a rate: 73 years.
const longest time.Duration = 1 << 61

// Errors of [RateLimiter].
var (
	ErrRateNotSet = errors.New("permits: no rate: set one first")
	ErrTooMany    = errors.New("permits: more than the rate has")
	ErrNone       = permitline.ErrNone
)
