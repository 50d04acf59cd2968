package limiter

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Bucket holds one thing to a quota, in memory. It is safe for concurrent use. Now is the
// time since the Unix epoch or, where the quota has no calendar, since any fixed instant,
// such as time.Since(start).
type Bucket interface {
	// Do executes ask at now.
	Do(now time.Duration, ask Ask) Result
	// FreshAfter returns how long until the bucket is in its initial state again if
	// nothing is taken.
	FreshAfter(now time.Duration) time.Duration
	// SetQuota replaces the quota at now. What was taken, reserved or owed carries over:
	// see [Op]. It fails for a quota that is not valid, and with [ErrUnsupported] for an
	// algorithm that was not given, and then changes nothing.
	SetQuota(q *rules.Quota, now time.Duration) error
	// Owe takes permits at now, whether they are there or not; below zero it gives some
	// back. See [Holding].
	Owe(permits float64, now time.Duration)
	// Spent returns how many permits are taken or owed at now.
	Spent(now time.Duration) float64
}

// NewBucket returns a Bucket. Without warm-up and penalty a token bucket or leaky bucket is
// lock-free; other quotas have a lock. Custom holds algorithms of your own, by name; it may
// be nil.
func NewBucket(q *rules.Quota, custom map[rules.Algorithm]Algorithm) (Bucket, error) {
	if bucketed(q) && q.Penalty == 0 {
		b, err := newBucketed(q, custom)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	a, err := NewAlgorithm(q, custom)
	if err != nil {
		return nil, err
	}
	return &lockedBucket{quota: q, algorithm: a, custom: custom}, nil
}

// lockedBucket is states under a mutex.
type lockedBucket struct {
	mu        sync.Mutex
	quota     *rules.Quota
	algorithm Algorithm
	custom    map[rules.Algorithm]Algorithm
	sides     sides
	owed      opening
}

func (b *lockedBucket) of(*rules.Quota) (Algorithm, error) { return b.algorithm, nil }

func (b *lockedBucket) Do(now time.Duration, ask Ask) (r Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	if b.sides.isStraight(b.quota, ask.Kind) {
		r = b.sides.state.Do(now, ask)
	} else if r, err = b.sides.do(now, b.quota, maker{algorithms: b}, &ask); err != nil { // an algorithm of the user's own that makes no state
		return open(&ask, Result{Decision: rules.Decision{Allowed: true}})
	}
	if r.Taken > 0 && b.sides.family != unlimitedFamily {
		r.Receipt.state = b.sides.family
	}
	return r
}

func (b *lockedBucket) FreshAfter(now time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.sides.hold(now, b.quota, maker{algorithms: b}) // what makes no state is as new
	return b.sides.freshAfter(now)
}

func (b *lockedBucket) SetQuota(q *rules.Quota, now time.Duration) error {
	a, err := NewAlgorithm(q, b.custom)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quota, b.algorithm = q, a
	if b.sides.state != nil {
		_ = b.sides.hold(now, q, maker{algorithms: b}) // what makes no state leaves the old one
	}
	return nil
}

// open returns the result of an ask that a custom algorithm made no state for, instead of r. What
// can never pass does not.
func open(ask *Ask, r Result) Result {
	if !r.Allowed && r.RetryAfter == 0 {
		return r
	}
	r = Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonOpen}}
	if ask.Kind.takes() {
		r.Taken = ask.N
	}
	return r
}
