package limiter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func newCached(t testing.TB, b limiter.Backend, keys int) *limiter.Cached {
	t.Helper()
	c, err := limiter.NewCached(b, limiter.CachedConfig{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCachedRefuses(t *testing.T) {
	for _, keys := range []int{-1, 1<<24 + 1} {
		if _, err := limiter.NewCached(&fake{}, limiter.CachedConfig{Keys: keys}); err == nil {
			t.Errorf("%d keys: no error", keys)
		}
	}
	if _, err := limiter.NewCached(nil, limiter.CachedConfig{}); err == nil {
		t.Error("no backend: no error")
	}
	c := newCached(t, &fakeBatcher{}, 0)
	q := fakeQuota(1, 1)
	if _, err := c.Do(context.Background(), fakeOp(limiter.Take, "", 1, &q)); !errors.Is(err, limiter.ErrNoKey) {
		t.Error(err)
	}
	if err := c.DoAll(context.Background(), []limiter.Op{{Quota: &q, Key: "k"}}, make([]limiter.Result, 1)); !errors.Is(err, limiter.ErrNoKey) {
		t.Error(err)
	}
}

func TestCachedDeniesWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1, 4), &fake{}
		c := newCached(t, b, 0)
		// do checks op's result and the number of backend calls.
		do := func(what string, op limiter.Op, calls int, allowed bool, retry time.Duration) {
			t.Helper()
			b.count()
			res, _ := mustDo(t, c, op)
			if n, _ := b.count(); n != calls || res.Allowed != allowed || res.RetryAfter != retry {
				t.Errorf("%s: %+v by %d calls, want allowed %v, retry after %v, by %d", what, res, n, allowed, retry, calls)
			}
		}
		do("the first", fakeOp(limiter.Take, "k", 3, &q), 1, true, 0)
		do("a denial", fakeOp(limiter.Take, "k", 3, &q), 1, false, 2*time.Second)
		do("again", fakeOp(limiter.Take, "k", 3, &q), 0, false, 2*time.Second)
		do("more", fakeOp(limiter.Take, "k", 4, &q), 0, false, 2*time.Second)
		do("a peek", fakeOp(limiter.Peek, "k", 3, &q), 0, false, 2*time.Second)
		kept := fakeOp(limiter.Take, "k", 1, &q)
		kept.Keep = 2
		do("as much, since some is kept", kept, 0, false, 2*time.Second)
		do("never", fakeOp(limiter.Take, "k", 5, &q), 1, false, 0)
		do("less than nothing", fakeOp(limiter.Take, "k", -1, &q), 1, false, 0)
		do("another key", fakeOp(limiter.Take, "l", 1, &q), 1, true, 0)
		do("nothing", fakeOp(limiter.Take, "k", 0, &q), 1, true, 0)
		kept.N, kept.Keep = 0, 3
		do("nothing, and some is kept", kept, 1, true, 0)
		do("less", fakeOp(limiter.Take, "k", 1, &q), 1, true, 0)
		do("at most, of none", fakeOp(limiter.AtMost, "k", 9, &q), 1, false, time.Second)
		do("at most, again", fakeOp(limiter.AtMost, "k", 2, &q), 0, false, time.Second)
		time.Sleep(time.Second - 1)
		do("a moment before", fakeOp(limiter.Take, "k", 1, &q), 0, false, 1)
		later := fakeOp(limiter.Reserve, "k", 1, &q)
		later.Within = time.Nanosecond
		b.count()
		if res, _ := mustDo(t, c, later); !res.Allowed || res.Delay != time.Nanosecond {
			t.Errorf("a reservation: %+v", res)
		}
		later.Kind, later.Mark = limiter.Return, 0
		mustDo(t, b, later)
		time.Sleep(time.Nanosecond)
		do("at the time that it named", fakeOp(limiter.Take, "k", 1, &q), 1, true, 0)
		if s := c.Stats(); s.Saved != 6 || s.Asked != 11 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCachedForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1, 4), &fake{}
		c := newCached(t, b, 0)
		for name, end := range map[string]func() *rules.Quota{
			"a return":      func() *rules.Quota { mustDo(t, c, fakeOp(limiter.Return, "k", 4, &q)); return &q },
			"a reset":       func() *rules.Quota { mustDo(t, c, fakeOp(limiter.Forget, "k", 0, &q)); return &q },
			"another quota": func() *rules.Quota { more := fakeQuota(1, 10); return &more },
		} {
			mustDo(t, c, fakeOp(limiter.Forget, "k", 0, &q))
			for range 2 {
				mustDo(t, c, fakeOp(limiter.Take, "k", 4, &q))
			}
			if res, _ := mustDo(t, c, fakeOp(limiter.Take, "k", 4, end())); !res.Allowed {
				t.Errorf("%s: %+v", name, res)
			}
		}
	})
}

func TestCachedLeavesToTheBackendWhatItHasToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted, locking, b := fakeQuota(1, 1), fakeQuota(1, 2), &fake{}
		counted.Algorithm, counted.CountDenied = rules.SlidingLog, true
		locking.Penalty = 10 * time.Second
		c := newCached(t, b, 0)
		for range 5 {
			mustDo(t, c, fakeOp(limiter.Take, "counted", 1, &counted))
		}
		if calls, _ := b.count(); calls != 5 {
			t.Errorf("%d calls: denials are to be counted", calls)
		}
		mustDo(t, c, fakeOp(limiter.Take, "k", 2, &locking))
		mustDo(t, c, fakeOp(limiter.Peek, "k", 1, &locking)) // denied, and locks nothing
		mustDo(t, c, fakeOp(limiter.Take, "k", 1, &locking)) // locks
		mustDo(t, c, fakeOp(limiter.Take, "k", 1, &locking)) // locked
		if calls, _ := b.count(); calls != 4 {
			t.Errorf("%d calls, want 4", calls)
		}
		for _, n := range []int64{1, 2} {
			if res, _ := mustDo(t, c, fakeOp(limiter.Take, "k", n, &locking)); res.Allowed || res.Reason != rules.ReasonLocked || res.RetryAfter != 10*time.Second {
				t.Errorf("%d under the lock: %+v", n, res)
			}
		}
		if calls, _ := b.count(); calls != 0 {
			t.Errorf("%d calls under the lock", calls)
		}
	})
}

// A denial under a lock is remembered at most until the lock ends. The next denial has to start
// another lock.
func TestCachedDenialsLockAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1, 1), &fake{}
		q.Penalty = 100 * time.Millisecond
		c := newCached(t, b, 0)
		for range 3 { // passes, locks, is locked
			mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q))
		}
		time.Sleep(q.Penalty)
		if res, _ := mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q)); res.Reason != rules.ReasonLimited || res.RetryAfter != 900*time.Millisecond {
			t.Errorf("after the lock: %+v", res)
		}
	})
}

// A Return that arrives while a denial is in flight is not lost.
func TestCachedReturnDuringADenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1, 1), &fake{}
		c := newCached(t, fakeSlow{b}, 0)
		mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q))
		var late sync.WaitGroup
		late.Go(func() { mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q)) })
		time.Sleep(time.Millisecond)
		mustDo(t, c, fakeOp(limiter.Return, "k", 1, &q))
		late.Wait()
		if res, _ := mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q)); !res.Allowed {
			t.Errorf("%+v", res)
		}
	})
}

// fakeSlow decides at once but reports takes and charges late.
type fakeSlow struct{ *fake }

func (s fakeSlow) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	res, err := s.fake.Do(ctx, op)
	if op.Kind == limiter.Take || op.Kind == limiter.Charge {
		time.Sleep(100 * time.Millisecond)
	}
	return res, err
}

func TestCachedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1, 2), &fakeBatcher{}
		c := newCached(t, b, 0)
		ops := []limiter.Op{fakeOp(limiter.Take, "a", 2, &q), fakeOp(limiter.Take, "b", 1, &q), fakeOp(limiter.Take, "a", 1, &q)}
		results := make([]limiter.Result, 3)
		want := func(what string, sent int, allowed ...bool) {
			t.Helper()
			b.count()
			if err := c.DoAll(context.Background(), ops, results); err != nil {
				t.Fatal(err)
			}
			if calls, got := b.count(); calls != min(sent, 1) || len(got) != sent {
				t.Errorf("%s: sent %d in %d calls, want %d in one", what, len(got), calls, sent)
			}
			for i, a := range allowed {
				if results[i].Allowed != a {
					t.Errorf("%s: op %d: %+v, want allowed %v", what, i, results[i], a)
				}
			}
		}
		want("at first", 3, true, true, false)
		want("then", 1, false, true, false)
		want("then again", 1, false, false, false)
		want("at last", 0, false, false, false)
		// Ops that free permits come before the ops that take them.
		ops = []limiter.Op{fakeOp(limiter.Return, "a", 1, &q), fakeOp(limiter.Take, "a", 1, &q)}
		results = results[:2]
		want("a return and a take", 2, true, true)

		away := errors.New("away")
		b.before = func(context.Context, ...limiter.Op) error { return away }
		if err := c.DoAll(context.Background(), ops, results); !errors.Is(err, away) {
			t.Error(err)
		}
	})
}

// Each denial without a call would have been a denial of the backend, and would have stayed one at
// least until the reported time. This holds for any calls by any callers.
func TestCachedProperty(t *testing.T) {
	var saved, asked uint64
	checkInBubble(t, func(t *rapid.T) {
		b := &fakeBatcher{}
		c, err := limiter.NewCached(b, limiter.CachedConfig{Keys: rapid.SampledFrom([]int{1, 2, 64}).Draw(t, "keys")})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		quotas := []rules.Quota{fakeQuota(1, 3), fakeQuota(4, 2)}
		quotas[1].Penalty = time.Duration(rapid.IntRange(0, 1).Draw(t, "penalty")) * time.Second
		for range rapid.IntRange(30, 60).Draw(t, "ops") {
			time.Sleep(time.Duration(rapid.IntRange(0, 200).Draw(t, "pause")) * time.Millisecond)
			i := rapid.IntRange(0, 1).Draw(t, "quota")
			op := limiter.Op{
				Quota: &quotas[i], Name: string(rune('x' + i)), Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
				Request: limiter.Request{
					Kind: rapid.SampledFrom([]limiter.OpKind{limiter.Take, limiter.Take, limiter.Take, limiter.Take, limiter.Take, limiter.Take, limiter.Peek, limiter.Peek, limiter.AtMost, limiter.Reserve, limiter.Charge, limiter.Return, limiter.Forget}).Draw(t, "kind"),
					N:    rapid.SampledFrom([]int64{1, 2, 1, 3, 0, 1, 2, 4, -1}).Draw(t, "n"), Keep: rapid.Int64Range(0, 2).Draw(t, "keep"),
				},
			}
			switch op.Kind {
			case limiter.Charge, limiter.Return:
				op.N = max(op.N, 0)
			case limiter.Take:
				if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 0 { // another instance
					b.Do(ctx, op)
					continue
				}
			}
			peek := op
			if peek.Kind = limiter.Peek; op.Kind == limiter.AtMost {
				peek.N = min(op.N, 1)
			}
			want, _ := b.Do(ctx, peek)
			var got limiter.Result
			if rapid.Bool().Draw(t, "batch") {
				one := []limiter.Result{{}}
				err = c.DoAll(ctx, []limiter.Op{op}, one)
				got = one[0]
			} else {
				got, err = c.Do(ctx, op)
			}
			if err != nil {
				t.Fatal(err)
			}
			if op.Kind > limiter.AtMost {
				continue
			}
			if got.Allowed != want.Allowed || got.Limit != want.Limit {
				t.Fatalf("%+v came to %+v, the backend says %+v", op.Request, got, want)
			}
			most := want.RetryAfter
			if want.Reason != rules.ReasonLocked { // a Peek locks nothing
				most = max(most, op.Quota.Penalty)
			}
			if !got.Allowed && got.RetryAfter > most || (got.RetryAfter == 0) != (want.RetryAfter == 0) {
				t.Fatalf("%+v: retry after %v, the backend says %v", op.Request, got.RetryAfter, want.RetryAfter)
			}
		}
		saved, asked = saved+c.Stats().Saved, asked+c.Stats().Asked
	})
	if !testing.Short() && (saved == 0 || asked == 0) {
		t.Errorf("saved %d calls of %d: nothing was tried", saved, saved+asked)
	}
}

// Several instances take from one backend and return to it. None admits a request that the backend
// would deny. If one denies without a call a request that the backend would allow, another instance
// has just returned permits.
func TestCachedInstancesProperty(t *testing.T) {
	var saved uint64
	wrongly := 0
	checkInBubble(t, func(t *rapid.T) {
		var (
			b         = &fakeBatcher{}
			q         = rules.Quota{Rate: rules.Rate{N: rapid.Int64Range(1, 3).Draw(t, "rate"), Per: 10 * time.Second}, Burst: rapid.Int64Range(1, 5).Draw(t, "burst")}
			instances [3]*limiter.Cached
			returned  [3]time.Time // when others than this instance last gave back
			taken     []limiter.Op
		)
		for i := range instances {
			var err error
			if instances[i], err = limiter.NewCached(b, limiter.CachedConfig{}); err != nil {
				t.Fatal(err)
			}
		}
		ctx := context.Background()
		for range rapid.IntRange(20, 80).Draw(t, "asks") {
			time.Sleep(time.Duration(rapid.IntRange(0, 400).Draw(t, "pause")) * time.Millisecond)
			i := rapid.IntRange(0, 2).Draw(t, "instance")
			if len(taken) > 0 && rapid.IntRange(0, 9).Draw(t, "gives back") == 0 {
				op := taken[len(taken)-1]
				taken = taken[:len(taken)-1]
				if _, err := instances[i].Do(ctx, op); err != nil {
					t.Fatal(err)
				}
				for other := range returned {
					if other != i {
						returned[other] = time.Now()
					}
				}
				continue
			}
			op := fakeOp(limiter.Take, "k", rapid.Int64Range(1, 2).Draw(t, "n"), &q)
			peek := op
			peek.Kind = limiter.Peek
			want, _ := b.Do(ctx, peek)
			got, err := instances[i].Do(ctx, op)
			switch {
			case err != nil:
				t.Fatal(err)
			case got.Allowed && !want.Allowed:
				t.Fatalf("it let pass what the backend denies: %+v, %+v", got, want)
			case !got.Allowed && want.Allowed:
				if wrongly++; returned[i].IsZero() || time.Since(returned[i]) >= time.Second {
					t.Fatalf("denied, and the backend allows it; others gave back at %v", returned[i])
				}
			case got.Allowed:
				op.Request = got.Return()
				taken = append(taken, op)
			}
		}
		for _, c := range instances {
			saved += c.Stats().Saved
		}
	})
	if !testing.Short() && (saved == 0 || wrongly == 0) {
		t.Errorf("%d calls were saved, %d times another had given back: nothing was tried", saved, wrongly)
	}
}

// However far the demand exceeds the limit, the backend is asked at most once for each permit that
// becomes free, plus once a second.
func TestCachedFarBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := rules.Quota{Rate: rules.Rate{N: 2, Per: time.Second}, Burst: 10}, &fakeBatcher{}
		c := newCached(t, b, 0)
		passed := int64(0)
		for range 100_000 { // 10,000 a second
			res, _ := mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q))
			passed += res.Taken
			time.Sleep(100 * time.Microsecond)
		}
		if calls, _ := b.count(); passed != 10+2*10-1 || calls > int(passed)+30 {
			t.Errorf("%d passed, by %d calls", passed, calls)
		}
	})
}

func TestCachedDenialAllocatesNothing(t *testing.T) {
	q := fakeQuota(1, 1)
	q.Rate.Per = time.Hour
	c := newCached(t, &fake{}, 0)
	op := fakeOp(limiter.Take, "k", 1, &q)
	for range 2 {
		mustDo(t, c, op)
	}
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Do(ctx, op) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Many keys share few places. The latest denials are remembered, and no key gets another's denial.
func TestCachedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1, 1), &fake{}
		c := newCached(t, b, 1)
		for _, key := range []string{"a", "a", "b", "b", "c", "c"} {
			mustDo(t, c, fakeOp(limiter.Take, key, 1, &q))
		}
		other := fakeOp(limiter.Take, "c", 1, &q)
		other.Name = "y"
		if res, _ := mustDo(t, c, other); !res.Allowed {
			t.Errorf("the same key of another limit: %+v", res)
		}
		b.count()
		for _, key := range []string{"c", "b", "c"} {
			mustDo(t, c, fakeOp(limiter.Take, key, 1, &q))
		}
		if calls, _ := b.count(); calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

// If one of several limits asked together is known to deny, none is asked. A denial caused by what
// the call itself would have taken is not remembered.
func TestCachedAsksNothingBesideAKnownDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := limiter.NewCached(memory, limiter.CachedConfig{})
		if err != nil {
			t.Fatal(err)
		}
		wide, narrow := fakeQuota(1, 100), fakeQuota(1, 2)
		op := func(name string, q *rules.Quota, n int64) limiter.Op {
			return limiter.Op{Quota: q, Name: name, Key: "k", Request: limiter.Request{N: n, Together: true}}
		}
		ask := func(ops ...limiter.Op) []limiter.Result {
			results := make([]limiter.Result, len(ops))
			if err := c.DoAll(context.Background(), ops, results); err != nil {
				t.Fatal(err)
			}
			return results
		}
		all, user := op("all", &wide, 1), op("user", &narrow, 1)
		if r := ask(all, user, user, user); r[3].Allowed || r[0].Taken+r[1].Taken+r[2].Taken != 0 {
			t.Fatalf("%+v: want the third of two refused", r)
		}
		if r := ask(all, user, user); !r[2].Allowed || r[2].Remaining != 0 {
			t.Fatalf("%+v: want all taken", r)
		}
		ask(all, user)
		asked := c.Stats().Asked
		if r := ask(all, user); r[0].Taken != 0 || !r[0].Allowed || r[1].Allowed {
			t.Errorf("%+v: want the second refused, and the first not asked", r)
		}
		if got := c.Stats().Asked; got != asked {
			t.Errorf("%d calls, want none", got-asked)
		}
		if d, _ := memory.Do(context.Background(), limiter.Op{Quota: &wide, Name: "all", Key: "k", Request: limiter.Request{Kind: limiter.Peek}}); d.Remaining != 99 {
			t.Errorf("%+v, want 99 left", d)
		}
	})
}

// Calls take longer than a permit takes to become free. The backend is still asked at most once for
// each permit, and every permit is used.
func TestCachedWhileCallsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, b := fakeQuota(1000, 100), &fakeBatcher{}
		b.before = func(context.Context, ...limiter.Op) error { time.Sleep(5 * time.Millisecond); return nil }
		c := newCached(t, b, 0)
		var callers sync.WaitGroup
		var passed atomic.Int64
		for range 12_000 { // in a second
			callers.Go(func() {
				res, _ := mustDo(t, c, fakeOp(limiter.Take, "k", 1, &q))
				passed.Add(res.Taken)
			})
			time.Sleep(time.Second / 12_000)
		}
		callers.Wait()
		calls, _ := b.count()
		if n := passed.Load(); n < 1050 || n > 1110 || calls > int(n)+200 {
			t.Errorf("%d passed, by %d calls", n, calls)
		}
	})
}
