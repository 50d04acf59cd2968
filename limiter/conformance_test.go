package limiter_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/rules"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	limitertest.TestBackend(t, limitertest.Config{
		New: func(t *testing.T, now func() time.Duration) limiter.Backend {
			m, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: 10_000, Clock: now})
			if err != nil {
				t.Fatal(err)
			}
			return m
		},
		Together: true,
	})
}

// A full table may refuse more than its quota requires, but never admits more.
func TestFullTablesKeepToTheirQuotas(t *testing.T) {
	t.Run("Memory", func(t *testing.T) {
		limitertest.TestFull(t, limitertest.Config{New: func(t *testing.T, now func() time.Duration) limiter.Backend {
			m, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: 2, Clock: now})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}})
	})
	t.Run("Keys", func(t *testing.T) {
		limitertest.TestFull(t, limitertest.Config{New: func(_ *testing.T, now func() time.Duration) limiter.Backend {
			return &fullKeys{now: now}
		}})
	})
}

// fullKeys is a backend of Keys with room for two keys. They have one quota at a time.
type fullKeys struct {
	now   func() time.Duration
	keys  *limiter.Keys
	quota *rules.Quota
}

func (b *fullKeys) Do(_ context.Context, op limiter.Op) (_ limiter.Result, err error) {
	switch {
	case b.keys == nil:
		b.keys, err = limiter.NewKeys(op.Quota, 2, nil)
	case b.quota != op.Quota:
		err = b.keys.SetQuota(op.Quota, b.now())
	}
	b.quota = op.Quota
	if err != nil {
		return limiter.Result{}, err
	}
	return b.keys.Do(b.now(), rules.Hash([]byte(op.Key)), []byte(op.Key), op.Request), nil
}

func TestBucketConforms(t *testing.T) {
	t.Parallel()
	testSingles(t, func(q *rules.Quota) (single, error) { return limiter.NewBucket(q, nil) })
}

func TestKeysConform(t *testing.T) {
	t.Parallel()
	testSingles(t, func(q *rules.Quota) (single, error) {
		k, err := limiter.NewKeys(q, 8, nil)
		return &oneOfKeys{Keys: k}, err
	})
}

// single is a limiter of one key with one quota.
type single interface {
	Do(now time.Duration, ask limiter.Request) limiter.Result
	SetQuota(q *rules.Quota, now time.Duration) error
}

// testSingles runs the suite on a backend that opens a limiter for each key.
func testSingles(t *testing.T, open func(*rules.Quota) (single, error)) {
	limitertest.TestBackend(t, limitertest.Config{
		New: func(_ *testing.T, now func() time.Duration) limiter.Backend {
			return &singles{now: now, open: open, keys: map[[2]string]*opened{}}
		},
	})
}

type singles struct {
	now  func() time.Duration
	open func(*rules.Quota) (single, error)
	mu   sync.Mutex
	keys map[[2]string]*opened
}

type opened struct {
	single
	quota *rules.Quota
}

func (b *singles) Do(_ context.Context, op limiter.Op) (limiter.Result, error) {
	if op.Name == "" || op.Key == "" {
		return limiter.Result{}, limiter.ErrNoKey
	}
	one, err := b.find(op)
	if err != nil {
		return limiter.Result{}, err
	}
	return one.Do(b.now(), op.Request), nil
}

func (b *singles) find(op limiter.Op) (single, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := [2]string{op.Name, op.Key}
	x := b.keys[id]
	if x != nil && (x.quota == op.Quota || x.SetQuota(op.Quota, b.now()) == nil) {
		x.quota = op.Quota
		return x.single, nil
	}
	one, err := b.open(op.Quota) // the first, or one that cannot continue with this quota
	if err != nil {
		return nil, err
	}
	b.keys[id] = &opened{one, op.Quota}
	return one, nil
}

// oneOfKeys is one key of a table in which other keys come and go at each call, so that its state
// is dropped whenever it may be.
type oneOfKeys struct {
	*limiter.Keys
	mu    sync.Mutex
	calls int
}

func (o *oneOfKeys) Do(now time.Duration, ask limiter.Request) limiter.Result {
	o.mu.Lock()
	o.calls++
	other := []byte("other" + strconv.Itoa(o.calls%7))
	o.mu.Unlock()
	o.Keys.Do(now, rules.Hash(other), other, limiter.Request{N: 1})
	key := []byte("one")
	return o.Keys.Do(now, rules.Hash(key), key, ask)
}

func TestAlgorithmsConform(t *testing.T) {
	for _, q := range []rules.Quota{
		{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 5},
		{Algorithm: rules.GCRA, Rate: rules.Rate{N: 7, Per: time.Minute}, Burst: 3},
		{Algorithm: rules.LeakyBucket, Rate: rules.Rate{N: 10, Per: time.Second}, Burst: 5, Shape: true},
		{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 5, Per: time.Second}},
		{Algorithm: rules.SlidingLog, Rate: rules.Rate{N: 5, Per: time.Second}},
		{Algorithm: rules.SlidingBlocks, Rate: rules.Rate{N: 5, Per: time.Second}},
	} {
		q = q.WithDefaults()
		a, err := limiter.NewAlgorithm(&q, nil)
		if err != nil {
			t.Fatal(err)
		}
		limitertest.TestAlgorithm(t, a, q)
	}
}
