package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// memoryAt returns a Memory and its clock, which the test sets.
func memoryAt(t testing.TB, c limiter.MemoryConfig) (*limiter.Memory, *atomic.Int64) {
	t.Helper()
	now := &atomic.Int64{}
	now.Store(int64(1000 * time.Hour))
	c.Clock = func() time.Duration { return time.Duration(now.Load()) }
	m, err := limiter.NewMemory(c)
	if err != nil {
		t.Fatal(err)
	}
	return m, now
}

func memoryDo(t testing.TB, m *limiter.Memory, q *rules.Quota, key string, ask limiter.Request) limiter.Result {
	t.Helper()
	r, err := m.Do(context.Background(), limiter.Op{Quota: q, Name: "test", Key: key, Request: ask})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counting is a custom algorithm: a fixed number of permits, ever.
type counting struct{}

func (counting) New(q *rules.Quota, _ time.Duration) limiter.State {
	if q.Missing > 0 {
		return nil
	}
	return &countingState{left: q.Burst}
}

type countingState struct{ left int64 }

func (s *countingState) Do(_ time.Duration, ask limiter.Request) limiter.Result {
	r := limiter.Result{Decision: rules.Decision{Allowed: ask.N <= s.left, Reason: rules.ReasonLimited}}
	if r.Allowed && ask.Kind == limiter.Take {
		s.left -= ask.N
		r.Reason, r.Taken = rules.ReasonWithin, ask.N
	}
	r.Remaining = s.left
	return r
}

func (s *countingState) FreshAfter(time.Duration) time.Duration { return time.Hour }

func TestMemoryErrors(t *testing.T) {
	m, _ := memoryAt(t, limiter.MemoryConfig{Algorithms: map[rules.Algorithm]limiter.Algorithm{"x_count": counting{}}})
	good := &rules.Quota{Rate: perSecond5, Burst: 5}
	for name, c := range map[string]struct {
		op   limiter.Op
		is   error
		want string
	}{
		"no key":           {limiter.Op{Quota: good, Name: "a"}, limiter.ErrNoKey, ""},
		"no name":          {limiter.Op{Quota: good, Key: "a"}, limiter.ErrNoKey, ""},
		"no quota":         {limiter.Op{Name: "a", Key: "a"}, nil, "quota of an Op is nil"},
		"no rate":          {limiter.Op{Quota: &rules.Quota{Burst: 1}, Name: "a", Key: "a"}, nil, "limit.rate"},
		"no burst":         {limiter.Op{Quota: &rules.Quota{Rate: perSecond5}, Name: "a", Key: "a"}, nil, "limit.burst"},
		"no kind":          {limiter.Op{Quota: good, Name: "a", Key: "a", Request: limiter.Request{Kind: 99}}, limiter.ErrUnsupported, "kind 99"},
		"unknown":          {limiter.Op{Quota: &rules.Quota{Algorithm: "x_own", Rate: perSecond5, Burst: 5}, Name: "a", Key: "a"}, limiter.ErrUnsupported, `"x_own"`},
		"makes no state":   {limiter.Op{Quota: &rules.Quota{Algorithm: "x_count", Rate: perSecond5, Burst: 5, Missing: 1}, Name: "a", Key: "a"}, limiter.ErrUnsupported, `"x_count"`},
		"none, to lock on": {limiter.Op{Quota: &rules.Quota{Algorithm: "x_count", Rate: perSecond5, Burst: 5, Missing: 1, Penalty: 1}, Name: "a", Key: "a"}, limiter.ErrUnsupported, `"x_count"`},
	} {
		for range 2 {
			if _, err := m.Do(context.Background(), c.op); err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ops := []limiter.Op{{Quota: good, Name: "a", Key: "b"}, c.op}
		if err := m.DoAll(context.Background(), ops, make([]limiter.Result, 2)); err == nil {
			t.Errorf("%s, in a batch: no error", name)
		}
	}
	if err := m.DoAll(context.Background(), make([]limiter.Op, 2), nil); err == nil {
		t.Error("no room for results: no error")
	}
	// An invalid quota does not change the state of a key.
	memoryDo(t, m, good, "key", limiter.Request{N: 5})
	if _, err := m.Do(context.Background(), limiter.Op{Quota: &rules.Quota{}, Name: "test", Key: "key"}); err == nil {
		t.Error("a known key, and a quota that is not valid: no error")
	}
	if r := memoryDo(t, m, good, "key", limiter.Request{N: 1}); r.Allowed {
		t.Errorf("after it: %+v", r)
	}
	for _, c := range []limiter.MemoryConfig{
		{MaxKeys: -1}, {MaxKeys: 1<<24 + 1},
		{Algorithms: map[rules.Algorithm]limiter.Algorithm{rules.GCRA: counting{}}},
	} {
		if _, err := limiter.NewMemory(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestMemoryOwnAlgorithm(t *testing.T) {
	m, now := memoryAt(t, limiter.MemoryConfig{Algorithms: map[rules.Algorithm]limiter.Algorithm{"x_count": counting{}}})
	q := &rules.Quota{Algorithm: "x_count", Rate: perSecond5, Burst: 2}
	for i, want := range []bool{true, true, false} {
		if r := memoryDo(t, m, q, "key", limiter.Request{N: 1}); r.Allowed != want {
			t.Errorf("take %d: %+v", i, r)
		}
	}
	now.Add(int64(24 * time.Hour))
	if r := memoryDo(t, m, q, "key", limiter.Request{N: 1}); r.Allowed {
		t.Errorf("a day later: %+v", r)
	}
	if r := memoryDo(t, m, q, "key", limiter.Request{Kind: limiter.Forget}); r.Remaining != 2 {
		t.Errorf("forgotten: %+v", r)
	}
}

// Pairs of names and keys are distinct, wherever one ends and the other begins.
func TestMemoryNames(t *testing.T) {
	m, _ := memoryAt(t, limiter.MemoryConfig{})
	q := &rules.Quota{Rate: perSecond5, Burst: 1}
	for _, id := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"a", "b"}, {"b", "a"}, {"a\x00b", "c"}, {"a", "b\x00c"}, {"x", strings.Repeat("k", 10_000)}} {
		for _, want := range []bool{true, false} {
			r, err := m.Do(context.Background(), limiter.Op{Quota: q, Name: id[0], Key: id[1], Request: limiter.Request{N: 1}})
			if err != nil || r.Allowed != want {
				t.Errorf("%q: %+v, %v, want %v", id, r, err, want)
			}
		}
	}
}

// Quotas with equal values are the same quota. A key keeps its taken permits under another quota.
func TestMemoryQuotaChanges(t *testing.T) {
	m, _ := memoryAt(t, limiter.MemoryConfig{})
	quota := func(n, burst int64, penalty time.Duration) *rules.Quota {
		return &rules.Quota{Rate: rules.Rate{N: n, Per: time.Second}, Burst: burst, Penalty: penalty}
	}
	for i, s := range []struct {
		quota     *rules.Quota
		n         int64
		allowed   bool
		remaining int64
		retry     time.Duration
	}{
		{quota(10, 10, 0), 4, true, 6, 0},
		{quota(10, 10, 0), 1, true, 5, 0},
		{quota(1, 10, 0), 0, true, 5, 0},                     // five are missing at a tenth of the rate
		{quota(1, 20, 0), 0, true, 15, 0},                    // and at twice the burst
		{quota(1, 4, 0), 1, false, 0, 2 * time.Second},       // five of four, so one is owed
		{quota(1, 4, time.Minute), 1, false, 0, time.Minute}, // and a penalty, which starts now
		{quota(1, 40, time.Minute), 1, false, 0, time.Minute},
		{quota(1, 40, time.Hour), 1, false, 0, time.Minute}, // a lock does not grow
		{quota(1, 40, time.Second), 1, false, 0, time.Second},
		{quota(1, 40, 0), 1, true, 34, 0},
		{&rules.Quota{Algorithm: rules.FixedWindow, Rate: perSecond5, Burst: 5}, 0, true, 5, 0}, // windows start with nothing taken
		{quota(1, 40, 0), 0, true, 34, 0},
	} {
		r := memoryDo(t, m, s.quota, "key", limiter.Request{N: s.n})
		if r.Allowed != s.allowed || r.Remaining != s.remaining || r.RetryAfter != s.retry {
			t.Errorf("step %d: %+v", i, r)
		}
	}
}

func TestMemoryAllocs(t *testing.T) {
	m, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	q := &rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 100_000}
	ops := make([]limiter.Op, 3)
	for i := range ops {
		ops[i] = limiter.Op{Quota: q, Name: "users", Key: strings.Repeat("x", 300*(i+1)), Request: limiter.Request{N: 1}}
	}
	results := make([]limiter.Result, len(ops))
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		_, err := m.Do(ctx, ops[0])
		if err := errors.Join(err, m.DoAll(ctx, ops, results)); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per run, want none", n)
	}
}

// Idle keys are dropped, although only one known key is asked from then on.
func TestMemoryForgetsIdleKeys(t *testing.T) {
	const count = 50_000
	m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: count})
	q := &rules.Quota{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: 1000}
	for i := range count {
		memoryDo(t, m, q, fmt.Sprint(i), limiter.Request{N: 1})
	}
	if s := m.Stats(); s.Keys < count*9/10 || s.Displaced != 0 {
		t.Fatalf("%+v", s)
	}
	for range 4000 { // 40 seconds
		now.Add(int64(10 * time.Millisecond))
		memoryDo(t, m, q, "known", limiter.Request{N: 1})
	}
	if s := m.Stats(); s.Keys > 1 {
		t.Errorf("%+v: idle keys are held", s)
	}
	now.Add(int64(time.Hour))
	m.Sweep()
	if s := m.Stats(); s.Keys != 0 {
		t.Errorf("%+v: after a sweep", s)
	}
}

// The same holds for keys whose bucket is one word, with a clock that jumps.
func TestKeyedForgetsWithoutNewKeys(t *testing.T) {
	const count = 100_000
	k := newKeyed(t, perSecond5, 2, count)
	for i := range count {
		take(k, 100*time.Hour, fmt.Sprint(i), 1)
	}
	for _, start := range []time.Duration{101 * time.Hour, time.Hour} {
		take(k, start, "known", 1)
		for now := start; now < start+40*time.Second; now += 10 * time.Millisecond {
			take(k, now, "known", 1)
		}
		if s := k.Stats(); s.Keys != 1 {
			t.Errorf("from %v: %+v", start, s)
		}
	}
}

// A full table limits new keys and evicted keys, and counts both.
func TestMemoryFull(t *testing.T) {
	m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: 2})
	q := &rules.Quota{Algorithm: rules.SlidingLog, Rate: perSecond5, Burst: 5}
	keys := []string{"a", "b", "c", "d"}
	for range 3 {
		for _, key := range keys {
			memoryDo(t, m, q, key, limiter.Request{Kind: limiter.AtMost, N: 5})
		}
	}
	for _, key := range keys {
		for _, n := range []int64{-1, 1, 6} {
			if r := memoryDo(t, m, q, key, limiter.Request{N: n}); r.Allowed {
				t.Errorf("%d of %s: %+v", n, key, r)
			}
		}
	}
	if s := m.Stats(); s.Keys != 2 || s.Displaced == 0 || s.Inherited == 0 {
		t.Errorf("%+v", s)
	}
	now.Add(int64(time.Second))
	for _, key := range keys {
		if r := memoryDo(t, m, q, key, limiter.Request{N: 5}); r.Reason != rules.ReasonWithin {
			t.Errorf("%s, when all is back: %+v", key, r)
		}
	}
}

// A key of a custom algorithm that lost its place is refused until its state would have equalled a
// new one, and no longer.
func TestFullTableOfOwnAlgorithm(t *testing.T) {
	m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: 2, Algorithms: map[rules.Algorithm]limiter.Algorithm{"x_count": counting{}}})
	q := &rules.Quota{Algorithm: "x_count", Rate: perSecond5, Burst: 5}
	for i := range 10 {
		if r := memoryDo(t, m, q, fmt.Sprint(i), limiter.Request{N: 5}); !r.Allowed {
			t.Fatalf("key %d: %+v", i, r)
		}
	}
	now.Add(int64(time.Minute))
	for range 3 {
		for i := range 10 {
			if r := memoryDo(t, m, q, fmt.Sprint(i), limiter.Request{N: 1}); r.Allowed {
				t.Fatalf("key %d passes after its last permit: %+v", i, r)
			}
		}
	}
	now.Add(int64(time.Hour)) // none was evicted since
	if r := memoryDo(t, m, q, "another", limiter.Request{N: 5}); !r.Allowed {
		t.Errorf("a new key, later: %+v", r)
	}
}

// Exactly the limit is admitted of one key, by any number of callers, while the key is dropped, its
// quota changes by value, and others come and go.
func TestMemoryConcurrent(t *testing.T) {
	const rounds, goroutines, limit = 100, 8, 5
	for name, q := range quotasOfAll {
		if q.Burst == rules.Unlimited || q.Missing > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
			for round := range rounds {
				now.Add(int64(10 * time.Second))
				var admitted atomic.Int64
				var all sync.WaitGroup
				for g := range goroutines {
					all.Go(func() {
						own := q
						for i := range 8 {
							memoryDo(t, m, &own, fmt.Sprint(round%2, g, i/4), limiter.Request{N: 1})
							if r := memoryDo(t, m, &own, "one", limiter.Request{N: 1}); r.Reason == rules.ReasonWithin {
								admitted.Add(1)
							}
						}
					})
				}
				all.Wait()
				got := admitted.Load()
				if q.WarmUp > 0 && got > 0 && got <= limit {
					continue // a cold bucket's burst is smaller
				}
				if got != q.Burst {
					t.Fatalf("round %d: admitted %d, want %d", round, got, q.Burst)
				}
			}
			if s := m.Stats(); s.Displaced != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Without a given clock, a Memory uses the wall clock.
func TestMemoryClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		q := &rules.Quota{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 1, Per: time.Minute}, Burst: 1, Calendar: rules.CalendarMinute}
		start := time.Now() // midnight
		time.Sleep(10 * time.Second)
		memoryDo(t, m, q, "key", limiter.Request{N: 1})
		if r := memoryDo(t, m, q, "key", limiter.Request{N: 1}); r.Allowed || r.RetryAfter != 50*time.Second {
			t.Errorf("%v after %v: %+v", time.Since(start), start, r)
		}
		time.Sleep(50 * time.Second)
		if r := memoryDo(t, m, q, "key", limiter.Request{N: 1}); !r.Allowed {
			t.Errorf("%v after %v: %+v", time.Since(start), start, r)
		}
	})
}
