package limiter

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Bucket holds one thing to a quota, in memory. It is safe for concurrent use. The argument now
// is the time since the Unix epoch or, if the quota has no calendar, since any fixed instant,
// such as time.Since(start).
//
// Takes from a token bucket or a leaky bucket without warm-up, penalty and shaping mostly need
// no lock. Once made, a Bucket allocates only memory that a window needs to grow.
type Bucket struct {
	held   atomic.Pointer[heldBucket]
	custom map[rules.Algorithm]Algorithm
	mu     sync.Mutex // held while the quota changes, or permits are owed
	owed   opening
}

// heldBucket is a bucket under one quota. Each quota has its own heldBucket, so a caller that
// has read the quota has read the state that belongs to it.
type heldBucket struct {
	heldQuota
	keyStates
}

// heldQuota is a quota in force and its arithmetic.
type heldQuota struct {
	quota     *rules.Quota
	algorithm Algorithm
	plan      *words // the algorithm, if it lends words; else nil
	family    family
}

func (h *heldQuota) algorithmFor(*rules.Quota) (Algorithm, error) { return h.algorithm, nil }

func newHeldQuota(q *rules.Quota, custom map[rules.Algorithm]Algorithm) (heldQuota, error) {
	quota := *q // the caller's may change
	a, err := NewAlgorithm(&quota, custom)
	if err != nil {
		return heldQuota{}, err
	}
	return heldQuota{&quota, a, lendable(a), familyOf(q)}, nil
}

// NewBucket returns a Bucket. Custom holds algorithms of your own, by name; it may be nil.
func NewBucket(q *rules.Quota, custom map[rules.Algorithm]Algorithm) (*Bucket, error) {
	held, err := newHeldQuota(q, custom)
	if err != nil {
		return nil, err
	}
	b := &Bucket{custom: custom}
	b.storeHeld(held, sides{})
	return b, nil
}

func (b *Bucket) storeHeld(q heldQuota, s sides) {
	held := &heldBucket{heldQuota: q}
	held.keyStates.initStates(s, q.plan)
	b.held.Store(held)
}

// Do executes ask at now.
func (b *Bucket) Do(now time.Duration, ask Request) (r Result) {
	for {
		held := b.held.Load()
		if held.plan != nil && held.lent.do(held.plan, instant(now), clockGrain, &ask, &r) {
			r.keepState(held.family)
			return r
		}
		found, err := held.keyStates.do(now, held.quota, maker{algorithms: &held.heldQuota}, &ask, &r)
		switch {
		case found == keyDropped:
		case err != nil: // a custom algorithm that makes no state
			return open(&ask)
		default:
			r.keepState(held.family)
			return r
		}
	}
}

// TakeOne is like Do with Request{N: 1}, for a caller that never returns permits. Its results stay
// in registers, while a Result is written and copied.
func (b *Bucket) TakeOne(now time.Duration) (allowed bool, reason rules.Reason, limit, remaining int64, retryAfter, resetAfter, delay time.Duration) {
	var d rules.Decision
	v, plan := b.takeWord(now, 1)
	if plan != nil {
		d = plan.decision(v)
	} else {
		d = b.Do(now, Request{N: 1}).Decision
	}
	return d.Allowed, d.Reason, d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Delay
}

// takeWord takes n and returns the result and the arithmetic used. The arithmetic is nil if
// the take needs the lock.
func (b *Bucket) takeWord(now time.Duration, n int64) (stepResult, *words) {
	held := b.held.Load()
	if held.plan != nil {
		if v, ok := held.lent.takeTokens(held.plan, instant(now), clockGrain, n); ok {
			return v, held.plan
		}
	}
	return stepResult{}, nil
}

// FreshAfter returns the time until the bucket is in its initial state again, if no permits are
// taken.
func (b *Bucket) FreshAfter(now time.Duration) (d time.Duration) {
	b.locked(func(held *heldBucket) { d = held.sides.freshAfter(now) })
	return d
}

// locked calls f with the bucket and its state.
func (b *Bucket) locked(f func(held *heldBucket)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.held.Load()
	held.keyStates.locked(func() { f(held) })
}

// SetQuota replaces the quota at now. Permits taken, reserved or owed carry over: see [Op]. It
// fails for a quota that is not valid, and with [ErrUnsupported] for an algorithm that was not
// passed to NewBucket. Then it changes nothing.
func (b *Bucket) SetQuota(q *rules.Quota, now time.Duration) error {
	next, err := newHeldQuota(q, b.custom)
	if err != nil {
		return err
	}
	b.locked(func(held *heldBucket) {
		s := held.sides
		if s.state != nil {
			_ = s.setQuota(now, next.quota, maker{algorithms: &next}) // an algorithm that makes no state leaves the old one
		}
		held.keyStates.drop()
		b.storeHeld(next, s)
	})
	return nil
}

// Owe takes permits at now, whether they are available or not. A negative number returns
// permits. See package holding.
func (b *Bucket) Owe(permits float64, now time.Duration) {
	b.locked(func(held *heldBucket) {
		b.owed.advance(held.quota, now)
		ask := b.owed.request(held.quota, permits, now)
		b.owed.add(held.quota, &Owing{All: permits}, now)
		held.sides.owePermits(now, held.quota, maker{algorithms: &held.heldQuota}, &ask, permits)
	})
}

// Spent returns how many permits are taken or owed at now.
func (b *Bucket) Spent(now time.Duration) (permits float64) {
	b.locked(func(held *heldBucket) {
		permits = held.sides.spent(now, held.quota, maker{algorithms: &held.heldQuota})
	})
	return permits
}

// open returns the result of an ask for which a custom algorithm made no state.
func open(ask *Request) Result {
	r := Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonOpen}}
	if ask.Kind.takes() {
		r.Taken = ask.N
	}
	return r
}
