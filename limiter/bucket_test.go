package limiter_test

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// quotasOfAll has one quota for each kind of state in memory.
var quotasOfAll = map[string]rules.Quota{
	"token bucket":   {Rate: perSecond5, Burst: 4},
	"starts short":   {Algorithm: rules.TokenBucket, Rate: perSecond5, Burst: 4, Missing: 2},
	"gcra":           {Algorithm: rules.GCRA, Rate: perSecond5, Burst: 4},
	"leaky bucket":   {Algorithm: rules.LeakyBucket, Rate: perSecond5, Burst: 4},
	"shaping":        {Algorithm: rules.LeakyBucket, Rate: perSecond5, Burst: 4, Shape: true},
	"warm-up":        {Rate: perSecond5, Burst: 4, WarmUp: 3 * time.Second},
	"penalty":        {Rate: perSecond5, Burst: 4, Penalty: time.Second},
	"fixed window":   {Algorithm: rules.FixedWindow, Rate: perSecond5, Burst: 5},
	"calendar":       {Algorithm: rules.FixedWindow, Rate: perSecond5, Burst: 5, Calendar: rules.CalendarSecond},
	"sliding log":    {Algorithm: rules.SlidingLog, Rate: perSecond5, Burst: 5},
	"sliding blocks": {Algorithm: rules.SlidingBlocks, Rate: perSecond5, Burst: 5, CountDenied: true},
	"locked log":     {Algorithm: rules.SlidingLog, Rate: perSecond5, Burst: 5, Penalty: time.Second},
	"unlimited":      {Burst: rules.Unlimited},
}

func drawAsk(rt *rapid.T) limiter.Request {
	return limiter.Request{
		Kind:   limiter.OpKind(rapid.Uint8Range(0, uint8(limiter.Forget)).Draw(rt, "kind")),
		N:      rapid.Int64Range(-1, 6).Draw(rt, "n"),
		Keep:   rapid.SampledFrom([]int64{0, 0, 0, 1, 2}).Draw(rt, "keep"),
		Within: time.Duration(rapid.Int64Range(0, 3).Draw(rt, "within")) * 200 * time.Millisecond,
	}
}

// No request at any time under any quota panics or overflows.
func TestBucketExtremes(t *testing.T) {
	extremes := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, 2, 1 << 40, 1 << 59, 1 << 61, 1<<62 - 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom(extremes), rapid.Int64Range(0, 10))
	pers := []time.Duration{1000, time.Millisecond, time.Second, 24 * time.Hour, 1 << 55}
	for name, base := range quotasOfAll {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				q := base
				if q.Burst != rules.Unlimited && q.Calendar == "" && q.Algorithm != rules.SlidingLog {
					q.Rate = rules.Rate{N: 1, Per: rapid.SampledFrom(pers).Draw(rt, "per")}
					q.Burst = rapid.SampledFrom([]int64{4, min(1<<61/int64(q.Rate.Per), 1<<61-1)}).Draw(rt, "burst")
					if q.Algorithm.Windowed() {
						q.Burst, q.Rate.N = 1, 1
					}
				}
				b, err := limiter.NewBucket(&q, nil)
				if err != nil {
					rt.Fatal(err)
				}
				for range rapid.IntRange(1, 20).Draw(rt, "calls") {
					now := time.Duration(number.Draw(rt, "now"))
					ask := limiter.Request{
						Kind: limiter.OpKind(rapid.Uint8().Draw(rt, "kind") % 9), N: number.Draw(rt, "n"),
						Keep: number.Draw(rt, "keep"), Within: time.Duration(number.Draw(rt, "within")), Mark: number.Draw(rt, "mark"),
					}
					r := b.Do(now, ask)
					switch {
					case r.Limit != q.Burst || r.Remaining < 0 && q.Burst >= 0 || r.Remaining > r.Limit:
						rt.Fatalf("%+v at %d: %+v", ask, now, r)
					case r.RetryAfter < 0 || r.ResetAfter < 0 || r.Delay < 0 || r.Taken < 0 || r.Mark < 0:
						rt.Fatalf("%+v at %d: %+v", ask, now, r)
					case r.Allowed && r.RetryAfter != 0, !r.Allowed && (r.Delay != 0 || r.Taken != 0):
						rt.Fatalf("%+v at %d: %+v", ask, now, r)
					case ask.N < 0 && ask.Kind != limiter.Forget && r.Allowed:
						rt.Fatalf("%+v at %d: %+v", ask, now, r)
					}
					if d := b.FreshAfter(now); d < 0 {
						rt.Fatalf("fresh after %d at %d", d, now)
					}
				}
			})
		})
	}
}

// Each key of a store is decided like a bucket of its own, though its state is dropped whenever it
// equals that of a new key.
func TestKeysAreABucketPerKey(t *testing.T) {
	for name, q := range quotasOfAll {
		if q.Missing > 0 {
			continue // a dropped key starts short again
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				const count = 6
				k, err := limiter.NewKeys(&q, count, nil)
				if err != nil {
					rt.Fatal(err)
				}
				var buckets [count]*limiter.Bucket
				var took [count]limiter.Result
				for i := range buckets {
					if buckets[i], err = limiter.NewBucket(&q, nil); err != nil {
						rt.Fatal(err)
					}
				}
				now := time.Hour
				for range rapid.IntRange(1, 60).Draw(rt, "calls") {
					now += time.Duration(rapid.SampledFrom([]int64{0, 1, 100, 300, 3000}).Draw(rt, "ms")) * time.Millisecond
					i := rapid.IntRange(0, count-1).Draw(rt, "key")
					key := []byte{byte('a' + i)}
					ask := drawAsk(rt)
					if ask.Kind == limiter.Return {
						ask.N, ask.Mark, took[i].Taken = took[i].Taken, took[i].Mark, 0
						ask.Keep = 0 // all of it: a partial return changes the marks of a bucket that is not dropped
					}
					got, want := k.Do(now, rules.Hash(key), key, ask), buckets[i].Do(now, ask)
					if got != want {
						rt.Fatalf("%+v of %s at %v:\n got %+v\nwant %+v", ask, key, now, got, want)
					}
					if want.Taken > 0 {
						took[i] = want
					}
					if rapid.IntRange(0, 9).Draw(rt, "sweep") == 0 {
						k.Sweep(now)
					}
				}
			})
		})
	}
}

func TestSetQuota(t *testing.T) {
	wider := func(q rules.Quota) rules.Quota {
		q.Rate.N, q.Burst = 2*q.Rate.N, 2*q.Burst
		return q
	}
	for name, q := range quotasOfAll {
		if q.Burst == rules.Unlimited || q.Missing > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			const now = time.Hour
			b, err := limiter.NewBucket(&q, nil)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := limiter.NewKeys(&q, 8, nil)
			if err != nil {
				t.Fatal(err)
			}
			key := []byte("key")
			one := func(ask limiter.Request) limiter.Result {
				t.Helper()
				got, want := keys.Do(now, rules.Hash(key), key, ask), b.Do(now, ask)
				if got.Mark = want.Mark; got != want {
					t.Fatalf("%+v: keys say %+v, a bucket %+v", ask, got, want)
				}
				return want
			}
			if r := one(limiter.Request{N: 3}); !r.Allowed {
				t.Fatalf("%+v", r)
			}
			twice := wider(q)
			for _, s := range []interface {
				SetQuota(*rules.Quota, time.Duration) error
			}{b, keys} {
				other := rules.Quota{Algorithm: rules.SlidingLog, Rate: perSecond5, Burst: 5}
				if q.Algorithm == rules.SlidingLog {
					other = rules.Quota{Rate: perSecond5, Burst: 5}
				}
				for _, q := range []*rules.Quota{&other, &twice} { // to another algorithm, and back
					if err := s.SetQuota(q, now); err != nil {
						t.Fatal(err)
					}
				}
				own := twice
				own.Algorithm = "x_none"
				if err := s.SetQuota(&own, now); !errors.Is(err, limiter.ErrUnsupported) {
					t.Errorf("%T: an algorithm that was not given: %v", s, err)
				}
				if err := s.SetQuota(&rules.Quota{}, now); err == nil || errors.Is(err, limiter.ErrUnsupported) {
					t.Errorf("%T: a quota that is not valid: %v", s, err)
				}
			}
			r := one(limiter.Request{Kind: limiter.Peek})
			if r.Limit != twice.Burst {
				t.Errorf("%+v, want a limit of %d", r, twice.Burst)
			}
			if q.WarmUp == 0 && r.Remaining != twice.Burst-3 {
				t.Errorf("%+v, want %d remaining", r, twice.Burst-3)
			}
			one(limiter.Request{N: 2})
		})
	}
}

// While the quota changes back and forth, at most the larger quota is admitted.
func TestSetQuotaWhileTaking(t *testing.T) {
	wide, narrow := rules.Quota{Rate: perSecond5, Burst: 1000}, rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1000}
	b, err := limiter.NewBucket(&wide, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := limiter.NewKeys(&wide, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("key")
	hash := rules.Hash(key)
	for name, s := range map[string]struct {
		do  func() bool
		set func(*rules.Quota) error
	}{
		"bucket": {
			func() bool { return b.Do(time.Hour, limiter.Request{N: 1}).Allowed },
			func(q *rules.Quota) error { return b.SetQuota(q, time.Hour) },
		},
		"keys": {
			func() bool { return keys.Do(time.Hour, hash, key, limiter.Request{N: 1}).Allowed },
			func(q *rules.Quota) error { return keys.SetQuota(q, time.Hour) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var admitted atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 1000 {
						if s.do() {
							admitted.Add(1)
						}
					}
				})
			}
			for i := range 200 {
				q := &wide
				if i%2 == 0 {
					q = &narrow
				}
				if err := s.set(q); err != nil {
					t.Error(err)
				}
			}
			all.Wait()
			if got := admitted.Load(); got != 1000 {
				t.Errorf("admitted %d, want the burst of 1000", got)
			}
		})
	}
}

func TestDoAllocs(t *testing.T) {
	for name, q := range quotasOfAll {
		b, err := limiter.NewBucket(&q, nil)
		if err != nil {
			t.Fatal(err)
		}
		k, err := limiter.NewKeys(&q, 8, nil)
		if err != nil {
			t.Fatal(err)
		}
		key := []byte("GET /users?user=1")
		hash := rules.Hash(key)
		now := time.Hour
		one := func() {
			now += 50 * time.Millisecond
			for _, kind := range []limiter.OpKind{limiter.Charge, limiter.Take, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Return} {
				b.Do(now, limiter.Request{Kind: kind, N: 1})
				k.Do(now, hash, key, limiter.Request{Kind: kind, N: 1})
			}
		}
		for range 100 { // a log grows to its size
			one()
		}
		if n := testing.AllocsPerRun(100, one); n != 0 {
			t.Errorf("%s: %v allocations per run, want none", name, n)
		}
	}
}
