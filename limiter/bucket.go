package limiter

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam"
)

// Bucket holds one thing to a quota, in memory. It is safe for concurrent use. Now is
// as for [State], or any other monotonic time where the quota has no calendar.
type Bucket interface {
	// Do does what is asked at now.
	Do(now time.Duration, ask Ask) Result
	// FreshAfter is how long until it is as good as new if nothing is taken; 0: it is.
	FreshAfter(now time.Duration) time.Duration
	// SetQuota goes on with another quota at now, and keeps what was taken. It fails,
	// with [ErrUnsupported] where only a new Bucket will do, and then changes nothing.
	SetQuota(q *hotparam.Quota, now time.Duration) error
}

// NewBucket makes a bucket of a quota: a [*TokenBucket] where one word is enough, which
// is all buckets without warm-up and penalty. Custom are the algorithms of the user's
// own, by name.
func NewBucket(q *hotparam.Quota, custom map[hotparam.Algorithm]Algorithm) (Bucket, error) {
	if bucketed(q) && q.Penalty == 0 {
		b, err := newBucketed(q)
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

// lockedBucket is a State under a mutex.
type lockedBucket struct {
	mu        sync.Mutex
	quota     *hotparam.Quota
	algorithm Algorithm
	custom    map[hotparam.Algorithm]Algorithm
	state     State // nil: none yet
}

// at is the state at now; nil if an algorithm of the user's own makes none. The caller
// holds the lock.
func (b *lockedBucket) at(now time.Duration) State {
	if b.state == nil {
		b.state = b.algorithm.New(b.quota, now)
	}
	return b.state
}

func (b *lockedBucket) Do(now time.Duration, ask Ask) Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ask.Kind == Forget {
		b.state, ask = nil, Ask{Kind: Peek}
	}
	if s := b.at(now); s != nil {
		return s.Do(now, ask)
	}
	return open(&ask, Result{Decision: hotparam.Decision{Allowed: true}})
}

func (b *lockedBucket) FreshAfter(now time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.at(now); s != nil {
		return s.FreshAfter(now)
	}
	return 0
}

func (b *lockedBucket) SetQuota(q *hotparam.Quota, now time.Duration) error {
	a, err := NewAlgorithm(q, b.custom)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if *q != *b.quota && b.state != nil {
		state := adapt(b.state, q, now)
		if state == nil {
			return errOtherKind(q)
		}
		b.state = state
	}
	b.quota, b.algorithm = q, a
	return nil
}
