package limiter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// fake is a backend of token buckets that follows the interface to the letter, under one lock. It
// remembers its calls and fails on demand.
type fake struct {
	// before is called without the lock, ahead of each op of a Do and once ahead of a DoAll. If it
	// returns an error, the call returns that error.
	before func(ctx context.Context, ops ...limiter.Op) error

	mu      sync.Mutex
	calls   int // Do and DoAll
	ops     []limiter.Op
	buckets map[string]*fakeBucket
}

type fakeBucket struct {
	full   time.Time // time at which the bucket is full again
	locked time.Time
}

func (f *fake) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	if f.before != nil {
		if err := f.before(ctx, op); err != nil {
			return limiter.Result{}, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.do(op), nil
}

// fakeBatcher is a fake with DoAll.
type fakeBatcher struct{ fake }

func (f *fakeBatcher) DoAll(ctx context.Context, ops []limiter.Op, results []limiter.Result) error {
	if f.before != nil {
		if err := f.before(ctx, ops...); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	for i, op := range ops {
		results[i] = f.do(op)
	}
	return nil
}

func (f *fake) do(op limiter.Op) limiter.Result {
	if op.Quota == nil || op.Name == "" || op.Key == "" {
		panic("an op that is not whole")
	}
	f.ops = append(f.ops, op)
	id := op.Name + "\x00" + op.Key
	b := f.buckets[id]
	if b == nil {
		b = &fakeBucket{}
		if f.buckets == nil {
			f.buckets = make(map[string]*fakeBucket)
		}
		f.buckets[id] = b
	}
	if op.Quota.Burst == rules.Unlimited {
		return limiter.Result{Taken: op.N, Decision: rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: -1, Remaining: -1}}
	}
	return b.do(op)
}

func (b *fakeBucket) do(op limiter.Op) limiter.Result {
	var (
		now      = time.Now()
		interval = op.Quota.Rate.Per / time.Duration(op.Quota.Rate.N)
		size     = op.Quota.Burst
		start    = b.full
		res      = limiter.Result{Decision: rules.Decision{Reason: rules.ReasonWithin, Allowed: true, Limit: size}}
	)
	if start.Before(now) {
		start = now
	}
	free := time.Duration(size)*interval - start.Sub(now) // the free permits, as time
	asks := op.Kind == limiter.Take || op.Kind == limiter.Peek || op.Kind == limiter.AtMost || op.Kind == limiter.Reserve
	n, wait := op.N, max(0, time.Duration(op.N+op.Keep)*interval-free)
	if op.N == 0 { // it takes nothing, so there is nothing to record
		wait = 0
	}
	switch {
	case op.Kind == limiter.Forget:
		*b, start, n, free = fakeBucket{}, now, 0, time.Duration(size)*interval
	case op.Kind == limiter.Return:
		start, n = start.Add(-time.Duration(op.N)*interval), 0
	case op.Kind == limiter.Charge:
	case asks && op.N < 0:
		res.Allowed, n = false, 0
	case asks && now.Before(b.locked):
		if op.Kind == limiter.AtMost && op.N > 0 {
			wait = max(0, time.Duration(min(op.N, 1)+op.Keep)*interval-free)
		}
		res.Allowed, res.Reason, res.RetryAfter, n = false, rules.ReasonLocked, max(b.locked.Sub(now), wait-op.Within), 0
		if least := min(op.N, 1); op.N+op.Keep > size && (op.Kind != limiter.AtMost || least+op.Keep > size) && least > 0 {
			res.RetryAfter = 0
		}
	case asks && op.N == 0:
	case op.Kind == limiter.AtMost && op.Keep >= size:
		res.Allowed, n = false, 0
	case op.Kind == limiter.AtMost:
		if n = min(op.N, max(0, int64(free/interval)-op.Keep)); n == 0 {
			res.Allowed, res.RetryAfter = false, time.Duration(1+op.Keep)*interval-free
		}
	case op.N+op.Keep > size:
		res.Allowed, n = false, 0
	case op.Kind == limiter.Reserve && wait <= op.Within:
		res.Delay = wait
	case wait > 0:
		res.Allowed, res.RetryAfter, n = false, wait-op.Within, 0
	}
	if !res.Allowed && res.Reason == rules.ReasonWithin {
		res.Reason = rules.ReasonLimited
		if op.Quota.Penalty > 0 && res.RetryAfter > 0 && op.Kind != limiter.Peek {
			b.locked = now.Add(op.Quota.Penalty)
			res.RetryAfter = max(res.RetryAfter, op.Quota.Penalty)
		}
	}
	if op.Kind != limiter.Peek {
		res.Taken = n
		b.full = start.Add(time.Duration(n) * interval)
		free -= time.Duration(n) * interval
	}
	if res.Reason != rules.ReasonLocked {
		res.Remaining = max(0, int64(free/interval))
	}
	res.ResetAfter = max(0, b.full.Sub(now))
	return res
}

// count returns the number of calls since it was last called, and their ops.
func (f *fake) count() (int, []limiter.Op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls, ops := f.calls, f.ops
	f.calls, f.ops = 0, nil
	return calls, ops
}

// fakePartly wraps a fake without its DoAll, and does not support some kinds.
type fakePartly struct {
	*fake
	cannot []limiter.OpKind
}

func (l fakePartly) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	for _, k := range l.cannot {
		if op.Kind == k {
			return limiter.Result{}, limiter.ErrUnsupported
		}
	}
	return l.fake.Do(ctx, op)
}

// fakeQuota returns a quota of n a second and a burst.
func fakeQuota(n, burst int64) rules.Quota {
	return rules.Quota{Rate: rules.Rate{N: n, Per: time.Second}, Burst: burst}
}

func newNamed(t testing.TB, backend limiter.Backend, name string, q rules.Quota) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(backend, name, q)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// checkInBubble checks a property in the time of a bubble, which passes without waiting.
func checkInBubble(t *testing.T, property func(*rapid.T)) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, property) // rapid would ask a *testing.T for its deadline, which a bubble does not have
	})
}
