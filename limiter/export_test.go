package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// TokenBucket is a Bucket with a method for each kind of request.
type TokenBucket struct{ *Bucket }

func NewTokenBucket(rate rules.Rate, burst int64) (*TokenBucket, error) {
	b, err := NewBucket(&rules.Quota{Algorithm: rules.TokenBucket, Rate: rate, Burst: burst}, nil)
	return &TokenBucket{b}, err
}

func (b *TokenBucket) Take(now time.Duration, n int64) rules.Decision {
	return b.Do(now, Request{N: n}).Decision
}

func (b *TokenBucket) Peek(now time.Duration, n int64) rules.Decision {
	return b.Do(now, Request{Kind: Peek, N: n}).Decision
}

func (b *TokenBucket) Charge(now time.Duration, n int64) {
	b.Do(now, Request{Kind: Charge, N: max(n, 0)})
}

func (b *TokenBucket) TimeToFull(now time.Duration) time.Duration { return b.FreshAfter(now) }

// Keyed is Keys of token buckets, with a method for each kind of request.
type Keyed struct{ *Keys }

func NewKeyed(rate rules.Rate, burst int64, maxKeys int) (*Keyed, error) {
	k, err := NewKeys(&rules.Quota{Algorithm: rules.TokenBucket, Rate: rate, Burst: burst}, maxKeys, nil)
	return &Keyed{k}, err
}

func (k *Keyed) Take(now time.Duration, hash uint64, key []byte, n int64) rules.Decision {
	return k.Do(now, hash, key, Request{N: n}).Decision
}

func (k *Keyed) Peek(now time.Duration, hash uint64, key []byte, n int64) rules.Decision {
	return k.Do(now, hash, key, Request{Kind: Peek, N: n}).Decision
}

func (k *Keyed) Charge(now time.Duration, hash uint64, key []byte, n int64) {
	k.Do(now, hash, key, Request{Kind: Charge, N: max(n, 0)})
}

func (m *Memory) Sweep() { m.table.sweepAll(instant(m.now())) }

func (l *Limiter) Name() string { return l.name }

// Waiting returns the number of keys that have waiters.
func (l *Limiter) Waiting() int {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	return len(l.lines.lines)
}

// AppendSnapshotLine appends the line of a record of a snapshot.
func AppendSnapshotLine(b, record []byte) []byte { return appendSnapshotLine(b, record) }
