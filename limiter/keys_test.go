package limiter_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func newKeyed(t testing.TB, rate rules.Rate, burst int64, maxKeys int) *limiter.Keyed {
	t.Helper()
	k, err := limiter.NewKeyed(rate, burst, maxKeys)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func take(k *limiter.Keyed, now time.Duration, key string, n int64) rules.Decision {
	return k.Take(now, rules.Hash([]byte(key)), []byte(key), n)
}

// Each key is decided like a bucket of its own, whatever is dropped in between, even if all hashes
// are equal.
func TestKeyedIsABucketPerKey(t *testing.T) {
	rate := rules.Rate{N: 10, Per: time.Second}
	var evicted uint64
	rapid.Check(t, func(rt *rapid.T) {
		const keys, burst = 12, 3
		k := newKeyed(t, rate, burst, keys)
		var buckets [keys]*limiter.TokenBucket
		for i := range buckets {
			buckets[i] = newBucket(t, rate, burst)
		}
		hash := rules.Hash
		if rapid.Bool().Draw(rt, "collide") {
			hash = func([]byte) uint64 { return 1 }
		}
		var now time.Duration
		for range rapid.IntRange(1, 200).Draw(rt, "calls") {
			now += time.Duration(rapid.SampledFrom([]int64{0, 1, 10, 100, 300}).Draw(rt, "ms")) * time.Millisecond
			i := rapid.IntRange(0, keys-1).Draw(rt, "key")
			key := fmt.Appendf(nil, "key%d", i)
			n := rapid.Int64Range(-1, burst+1).Draw(rt, "n")
			if rapid.IntRange(0, 3).Draw(rt, "charge") == 0 {
				k.Charge(now, hash(key), key, 2*n)
				buckets[i].Charge(now, 2*n)
			}
			if got, want := k.Peek(now, hash(key), key, n), buckets[i].Peek(now, n); got != want {
				rt.Fatalf("peek %d of %s at %v:\n got %+v\nwant %+v", n, key, now, got, want)
			}
			got, want := k.Take(now, hash(key), key, n), buckets[i].Take(now, n)
			if got != want {
				rt.Fatalf("take %d of %s at %v:\n got %+v\nwant %+v", n, key, now, got, want)
			}
			if want.Allowed && rapid.Bool().Draw(rt, "give back") {
				back := limiter.Request{Kind: limiter.Return, N: n}
				k.Do(now, hash(key), key, back)
				buckets[i].Do(now, back)
			}
		}
		evicted += k.Stats().Evicted
	})
	if !testing.Short() && evicted == 0 {
		t.Error("nothing was ever dropped: the test tests nothing")
	}
}

// A full table limits new keys and evicted keys, and counts both.
func TestKeyedFull(t *testing.T) {
	const maxKeys, full = 4, 400 * time.Millisecond
	k := newKeyed(t, perSecond5, 2, maxKeys)
	for round := range 3 {
		for i := range 2 * maxKeys {
			if d := take(k, 0, fmt.Sprint(i), 2); d.Reason != rules.ReasonWithin && round == 0 || d.Allowed && round > 0 {
				t.Fatalf("key %d in round %d: %+v", i, round, d)
			}
		}
	}
	for _, n := range []int64{-1, 3} {
		if d := take(k, 0, "new", n); d.Allowed || d.RetryAfter != 0 {
			t.Fatalf("take %d can never pass: %+v", n, d)
		}
	}
	if s := k.Stats(); s.Keys != maxKeys || s.Displaced != maxKeys || s.Inherited < maxKeys {
		t.Fatalf("stats %+v", s)
	}
	for i := range 2 * maxKeys {
		if d := take(k, full-1, fmt.Sprint(i), 2); d.Allowed {
			t.Fatalf("key %d, 1 ns before it is full: %+v", i, d)
		}
	}
	for i := range 2 * maxKeys {
		if d := take(k, full, fmt.Sprint(i), 2); d.Reason != rules.ReasonWithin {
			t.Fatalf("key %d, once it is full: %+v", i, d)
		}
	}
}

// A table that drops its oldest key, or any key that comes next, has this bug: a flood makes it
// forget a drained key, which then starts again with a full burst.
func TestKeyedFloodDropsNoDrainedKey(t *testing.T) {
	const maxKeys, flood = 256, 20_000
	k := newKeyed(t, perSecond5, 2, maxKeys)
	if d := take(k, 0, "hot", 2); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	// A key that takes one token is full again after 200 ms, the hot key after 400 ms. At the last
	// instant all keys but the hot one may be dropped.
	const now = 399 * time.Millisecond
	for i := range flood {
		take(k, now*time.Duration(i)/flood, fmt.Sprint(i), 1)
	}
	if d := take(k, now, "hot", 2); d.Reason != rules.ReasonLimited || d.RetryAfter < time.Millisecond {
		t.Errorf("after the flood: %+v", d)
	}
	if s := k.Stats(); s.Keys > maxKeys || s.Displaced == 0 {
		t.Errorf("stats %+v: the flood was no flood", s)
	}
}

// Idle keys are dropped as others arrive, although there is room for all.
func TestKeyedForgetsIdleKeys(t *testing.T) {
	const maxKeys, arrivals = 1024, 100_000
	k := newKeyed(t, perSecond5, 2, maxKeys)
	for i := range arrivals {
		take(k, time.Duration(i)*10*time.Millisecond, fmt.Sprint(i), 1) // 20 in use at a time
	}
	if s := k.Stats(); s.Displaced != 0 || s.Keys > maxKeys*3/4 {
		t.Errorf("stats %+v: want no overflow, and a quarter of the room or more left", s)
	}
}

// A full bucket may be dropped at the very moment of a take. Each second all buckets are full. Half
// of the goroutines take from one of them, and the others bring in new keys, which drops the old
// ones. Exactly the one bucket's burst is admitted, so no take is lost with a dropped bucket.
func TestKeyedDropsWhileTaking(t *testing.T) {
	const rounds, goroutines, calls, burst = 500, 8, 16, 2
	k := newKeyed(t, perSecond5, burst, 64)
	for r := range rounds {
		now := time.Duration(r) * time.Second
		var admitted atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for g := range goroutines {
			all.Go(func() {
				<-start
				for i := range calls {
					if g%2 == 1 {
						take(k, now, fmt.Sprint(r%2, g, i/2), 1)
					} else if d := take(k, now, "one", 1); d.Reason == rules.ReasonWithin {
						admitted.Add(1)
					}
				}
			})
		}
		close(start)
		all.Wait()
		if got := admitted.Load(); got != burst {
			t.Fatalf("second %d: admitted %d, want the burst, %d", r, got, burst)
		}
	}
	if s := k.Stats(); s.Evicted < rounds || s.Displaced != 0 {
		t.Errorf("stats %+v: want buckets dropped in each round, and room for all", s)
	}
}

// A bucket is dropped, and then a goroutine comes whose clock is late. The new bucket earns nothing
// until the clock has caught up.
func TestKeyedClockBack(t *testing.T) {
	const ms = time.Millisecond
	k := newKeyed(t, perSecond5, 2, 2)
	take(k, 9600*ms, "one", 2)
	take(k, 10_000*ms, "other", 1)
	if s := k.Stats(); s.Evicted != 1 {
		t.Fatalf("stats %+v: the full bucket was not dropped", s)
	}
	if d := take(k, 9600*ms, "one", 2); !d.Allowed {
		t.Errorf("what was full at 10 s: %+v", d)
	}
	if d := take(k, 9900*ms, "one", 1); d.Allowed || d.RetryAfter != 300*ms {
		t.Errorf("before 10 s: %+v", d)
	}
	if d := take(k, 10_200*ms, "one", 1); !d.Allowed || d.Remaining != 0 {
		t.Errorf("at 10.2 s: %+v", d)
	}
}

// A clock that is reset grants nothing to keys that are not full, and soon everything is as before.
func TestKeyedClockReset(t *testing.T) {
	k := newKeyed(t, perSecond5, 2, 8)
	take(k, time.Hour, "a", 1)
	for i := range 8 {
		take(k, 2*time.Hour, fmt.Sprint(i), 2) // drops a, at 2 h
	}
	if s := k.Stats(); s.Evicted != 1 {
		t.Fatalf("stats %+v: the full bucket was not dropped", s)
	}
	if d := take(k, 0, "1", 1); d.Allowed || d.RetryAfter != 200*time.Millisecond {
		t.Errorf("after the reset: %+v", d)
	}
	const fill = 400 * time.Millisecond
	for _, key := range []string{"1", "a", "b"} {
		if d := take(k, fill, key, 2); !d.Allowed {
			t.Errorf("%s, when every bucket has had the time to fill: %+v", key, d)
		}
	}
}

func TestKeyedAllocs(t *testing.T) {
	k := newKeyed(t, perSecond5, 5, 100)
	key := []byte("GET /users?user=1")
	hash := rules.Hash(key)
	var now time.Duration
	if n := testing.AllocsPerRun(100, func() {
		now += 100 * time.Millisecond
		k.Take(now, hash, key, 2)
		k.Peek(now, hash, key, 1)
		k.Charge(now, hash, key, 2)
		k.Do(now, hash, key, limiter.Request{Kind: limiter.Return, N: 1})
	}); n != 0 {
		t.Errorf("%v allocations per run for a known key, want none", n)
	}
}

func TestNewKeyedErrors(t *testing.T) {
	for _, maxKeys := range []int{-1, 0, 1<<24 + 1} {
		if _, err := limiter.NewKeyed(perSecond5, 1, maxKeys); err == nil {
			t.Errorf("maxKeys %d: no error", maxKeys)
		}
	}
	if _, err := limiter.NewKeyed(rules.Rate{}, 1, 1); err == nil {
		t.Error("no rate: no error")
	}
	for _, maxKeys := range []int{1, 2, 3, 63, 64, 65, 100_000} {
		k := newKeyed(t, perSecond5, 1, maxKeys)
		for i := range maxKeys + 1 {
			take(k, 0, fmt.Sprint(i), 1)
		}
		if s, want := k.Stats(), (limiter.Stats{Keys: int64(maxKeys), Displaced: 1}); s != want {
			t.Errorf("maxKeys %d: stats %+v, want %+v", maxKeys, s, want)
		}
	}
}

// A take that had been earned back before its key was dropped returns none of the permits taken
// since, whatever other permits of the key were returned.
func TestMarksOfDroppedKey(t *testing.T) {
	q := rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 10}.WithDefaults()
	k, err := limiter.NewKeys(&q, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("key")
	do := func(at time.Duration, ask limiter.Request) limiter.Result {
		return k.Do(at, rules.Hash(key), key, ask)
	}
	const start, later = time.Hour, time.Hour + 6*time.Second
	do(start, limiter.Request{N: 1})
	within := do(start, limiter.Request{N: 5})
	do(start, limiter.Request{N: 1})
	do(start, within.Return())
	earned := do(start, limiter.Request{N: 3})
	k.Sweep(later)
	do(later, limiter.Request{N: 9})
	do(later, earned.Return())
	if r := do(later, limiter.Request{Kind: limiter.Peek}); r.Remaining != 1 {
		t.Errorf("%d remain, want 1", r.Remaining)
	}
}
