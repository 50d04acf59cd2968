package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func newDeferred(t testing.TB, b limiter.Backend, cfg limiter.DeferredConfig) *limiter.Deferred {
	t.Helper()
	d, err := limiter.NewDeferred(b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDeferredRefuses(t *testing.T) {
	for name, cfg := range map[string]limiter.DeferredConfig{
		"too often": {Every: time.Microsecond}, "too rarely": {Every: time.Minute}, "no keys": {Keys: -1}, "too many keys": {Keys: 1<<24 + 1},
	} {
		if _, err := limiter.NewDeferred(&fake{}, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := limiter.NewDeferred(nil, limiter.DeferredConfig{}); err == nil {
		t.Error("no backend: no error")
	}
	q, d := fakeQuota(1, 1), newDeferred(t, &fakeBatcher{}, limiter.DeferredConfig{})
	if _, err := d.Do(context.Background(), fakeOp(limiter.Take, "", 1, &q)); !errors.Is(err, limiter.ErrNoKey) {
		t.Error(err)
	}
	if err := d.DoAll(context.Background(), []limiter.Op{{Quota: &q, Key: "k"}}, make([]limiter.Result, 1)); !errors.Is(err, limiter.ErrNoKey) {
		t.Error(err)
	}
}

func TestDeferredDecidesHereAndTellsLater(t *testing.T) {
	for name, batched := range map[string]bool{"single": false, "batcher": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { decidesHere(t, batched) })
		})
	}
}

func decidesHere(t *testing.T, batched bool) {
	whole := &fakeBatcher{}
	b, q := &whole.fake, fakeQuota(10, 10)
	var backend limiter.Backend = whole
	if !batched {
		backend = fakePartly{fake: b}
	}
	d := newDeferred(t, backend, limiter.DeferredConfig{})
	stop := runInBubble(t, d.Run)
	calls := func(what string, want int) []limiter.Op {
		t.Helper()
		n, ops := b.count()
		if n != want {
			t.Errorf("%s: %d calls, want %d: %+v", what, n, want, ops)
		}
		return ops
	}
	for i := range int64(5) {
		if res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q)); !res.Allowed || res.Remaining != 9-i || res.Taken != 1 {
			t.Fatalf("take %d: %+v", i, res)
		}
	}
	mustDo(t, d, fakeOp(limiter.Peek, "k", 1, &q))
	mustDo(t, d, fakeOp(limiter.Charge, "k", 2, &q))
	calls("the first alone asks", 1)
	time.Sleep(101 * time.Millisecond)
	if ops := calls("the refresh", 1); len(ops) != 1 || ops[0].Kind != limiter.Charge || ops[0].N != 6 {
		t.Errorf("the refresh told %+v", ops)
	}
	if res, _ := mustDo(t, d, fakeOp(limiter.Peek, "k", 1, &q)); res.Remaining != 4 || res.ResetAfter != 599*time.Millisecond {
		t.Errorf("after the refresh, which brought what was earned: %+v", res)
	}
	calls("a peek", 0)

	// What is used up is asked for, and what was taken is told with it.
	mustDo(t, d, fakeOp(limiter.AtMost, "k", 3, &q))
	if res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 2, &q)); res.Allowed || res.RetryAfter != 99*time.Millisecond {
		t.Errorf("%+v", res)
	}
	if ops := calls("used up", map[bool]int{false: 2, true: 1}[batched]); len(ops) != 2 || ops[0].Kind != limiter.Charge || ops[0].N != 3 {
		t.Errorf("told %+v", ops)
	}

	// What is not used is dropped.
	time.Sleep(time.Second)
	if s := d.Stats(); s.Keys != 0 || s.Lost != 0 || s.Local != 8 {
		t.Errorf("%+v", s)
	}
	calls("idle", 0)
	mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
	mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
	stop()
	if ops := calls("at the end", 2); ops[1].Kind != limiter.Charge || ops[1].N != 1 {
		t.Errorf("the end told %+v", ops)
	}
}

func TestDeferredReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &fake{}, fakeQuota(1, 10)
		window := rules.Quota{Algorithm: rules.SlidingLog, Rate: q.Rate, Burst: 10}
		d := newDeferred(t, b, limiter.DeferredConfig{})
		defer runInBubble(t, d.Run)()
		back := func(key string, res limiter.Result, q *rules.Quota) {
			op := fakeOp(limiter.Return, key, res.Taken, q)
			op.Ask = res.Return()
			mustDo(t, d, op)
		}
		want := func(what, key string, q *rules.Quota, remaining int64) {
			t.Helper()
			if res, _ := mustDo(t, b, fakeOp(limiter.Peek, key, 1, q)); res.Remaining != remaining {
				t.Errorf("%s: %d remain, want %d", what, res.Remaining, remaining)
			}
		}
		first, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
		second, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 2, &q))
		back("k", second, &q)
		time.Sleep(110 * time.Millisecond)
		want("returned before it was told", "k", &q, 9)
		second, _ = mustDo(t, d, fakeOp(limiter.Take, "k", 2, &q))
		time.Sleep(110 * time.Millisecond)
		want("told", "k", &q, 7)
		back("k", second, &q)
		back("k", first, &q)
		want("returned after it was told", "k", &q, 10)

		mustDo(t, d, fakeOp(limiter.Take, "w", 1, &window))
		second, _ = mustDo(t, d, fakeOp(limiter.Take, "w", 2, &window))
		time.Sleep(110 * time.Millisecond)
		back("w", second, &window)
		want("a window's too, by the mark of the charge", "w", &window, 9)
	})
}

func TestDeferredGoesStraightOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &fake{}, fakeQuota(1, 100)
		d := newDeferred(t, b, limiter.DeferredConfig{Keys: 1})
		shaped, free := q, rules.Quota{Burst: rules.Unlimited}
		shaped.Algorithm, shaped.Shape = rules.LeakyBucket, true
		mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
		b.count()
		wide := newDeferred(t, b, limiter.DeferredConfig{})
		for name, op := range map[string]limiter.Op{
			"a reservation": fakeOp(limiter.Reserve, "k", 1, &q), "nothing": fakeOp(limiter.Take, "k", 0, &q), "less": fakeOp(limiter.Take, "k", -1, &q),
			"what is shaped": fakeOp(limiter.Take, "s", 1, &shaped), "what has no limit": fakeOp(limiter.Take, "f", 1, &free),
			"a key for which there is no room": fakeOp(limiter.Take, "l", 1, &q),
		} {
			to := wide
			if op.Key == "l" {
				to = d
			}
			for range 2 {
				mustDo(t, to, op)
			}
			if calls, _ := b.count(); calls != 2 {
				t.Errorf("%s: %d calls for 2", name, calls)
			}
		}
		kept := fakeOp(limiter.Take, "k", 1, &q)
		kept.Keep = 100
		if res, _ := mustDo(t, d, kept); res.Allowed {
			t.Errorf("with all kept: %+v", res)
		}
		mustDo(t, d, fakeOp(limiter.Charge, "k", 200, &q))
		if res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", math.MaxInt64, &q)); res.Allowed {
			t.Errorf("more than there ever is, in debt: %+v", res)
		}
		mustDo(t, d, fakeOp(limiter.Forget, "k", 0, &q))
		b.count()
		if res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 50, &q)); !res.Allowed {
			t.Errorf("after a reset: %+v", res)
		}
		if calls, _ := b.count(); calls != 1 {
			t.Errorf("after a reset: %d calls", calls)
		}
		mustDo(t, d, fakeOp(limiter.Forget, "k", 0, &q))
		mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
		if calls, _ := b.count(); calls != 2 {
			t.Errorf("after another reset: %d calls", calls)
		}
		more := fakeQuota(1, 200)
		if res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 1, &more)); res.Limit != 200 {
			t.Errorf("another quota: %+v", res)
		}
	})
}

// Where nobody runs it, what is known is soon too old.
func TestDeferredWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &fake{}, fakeQuota(1, 1000)
		d := newDeferred(t, b, limiter.DeferredConfig{})
		for range 100 {
			mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
			time.Sleep(10 * time.Millisecond)
		}
		if calls, _ := b.count(); calls < 5 || calls > 6 {
			t.Errorf("%d calls in a second", calls)
		}
	})
}

func TestDeferredLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, q := newFakePrimary(), fakeQuota(1, 10)
		d := newDeferred(t, p, limiter.DeferredConfig{})
		defer runInBubble(t, d.Run)()
		mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
		mustDo(t, d, fakeOp(limiter.Take, "k", 4, &q))
		p.refuses.Store(true)
		time.Sleep(110 * time.Millisecond)
		if s := d.Stats(); s.Lost != 4 {
			t.Errorf("%+v", s)
		}
		if _, err := d.Do(context.Background(), fakeOp(limiter.Take, "new", 1, &q)); !errors.Is(err, errFakeRefused) {
			t.Error(err)
		}
	})
}

func TestDeferredBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &fakeBatcher{}, fakeQuota(1, 5)
		d := newDeferred(t, b, limiter.DeferredConfig{})
		ops := []limiter.Op{fakeOp(limiter.Take, "a", 2, &q), fakeOp(limiter.Take, "b", 1, &q)}
		results := make([]limiter.Result, 2)
		for i, want := range []struct {
			calls, ops int
			remaining  [2]int64
		}{{1, 2, [2]int64{3, 4}}, {0, 0, [2]int64{1, 3}}, {1, 2, [2]int64{1, 2}}} { // the third: a charge of 2, and a denial
			if err := d.DoAll(context.Background(), ops, results); err != nil {
				t.Fatal(err)
			}
			calls, sent := b.count()
			if calls != want.calls || len(sent) != want.ops || results[0].Remaining != want.remaining[0] || results[1].Remaining != want.remaining[1] {
				t.Errorf("batch %d: %d calls of %d ops: %+v", i, calls, len(sent), results)
			}
		}
	})
}

// One instance keeps the limit exactly; of n each may be a burst ahead of what it hears,
// and in the end all that passed is charged.
func TestDeferredProperty(t *testing.T) {
	var local uint64
	checkInBubble(t, func(rt *rapid.T) {
		var (
			b    = &fakeBatcher{}
			n    = rapid.IntRange(1, 4).Draw(rt, "instances")
			rate = rapid.Int64Range(1, 200).Draw(rt, "rate")
			q    = fakeQuota(rate, rapid.Int64Range(1, 50).Draw(rt, "burst"))
			all  []*limiter.Deferred
			stop []func()
		)
		for range n {
			d := newDeferred(t, b, limiter.DeferredConfig{})
			all, stop = append(all, d), append(stop, runInBubble(t, d.Run))
		}
		start, passed := time.Now(), int64(0)
		for range rapid.IntRange(1, 200).Draw(rt, "asks") {
			time.Sleep(time.Duration(rapid.IntRange(0, 40).Draw(rt, "pause")) * time.Millisecond)
			d := all[rapid.IntRange(0, n-1).Draw(rt, "instance")]
			kind := rapid.SampledFrom([]limiter.Kind{limiter.Take, limiter.AtMost, limiter.Reserve}).Draw(rt, "kind")
			res, _ := mustDo(t, d, fakeOp(kind, "k", rapid.Int64Range(1, 10).Draw(rt, "n"), &q))
			if !res.Allowed {
				continue
			}
			passed += res.Taken
			if rapid.IntRange(0, 5).Draw(rt, "returned") == 0 {
				op := fakeOp(limiter.Return, "k", res.Taken, &q)
				op.Ask = res.Return()
				mustDo(t, d, op)
				passed -= res.Taken
			}
		}
		most := q.Burst*int64(n) + rate*int64(time.Since(start))/int64(time.Second) + 1
		if passed > most {
			rt.Fatalf("%d passed with %d instances, at most %d may", passed, n, most)
		}
		for _, s := range stop {
			s()
		}
		for _, d := range all {
			if s := d.Stats(); s.Lost != 0 {
				rt.Fatalf("%+v", s)
			} else {
				local += s.Local
			}
		}
		// The bucket owes what passed beyond it.
		res, _ := mustDo(t, b, fakeOp(limiter.Peek, "k", 1, &q))
		earned := rate * int64(time.Since(start)) / int64(time.Second)
		if left := q.Burst + earned - passed; left <= 0 && res.Remaining > 1 {
			rt.Fatalf("%d remain, after %d of %d + %d", res.Remaining, passed, q.Burst, earned)
		}
	})
	if local == 0 {
		t.Error("nothing was decided locally")
	}
}

// What is taken while something else is being told counts as well.
func TestDeferredWithASlowBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := fakeQuota(10, 1000)
		d := newDeferred(t, fakeSlow{&fake{}}, limiter.DeferredConfig{})
		stop := runInBubble(t, d.Run)
		var (
			passed atomic.Int64
			all    sync.WaitGroup
		)
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
					res, _ := mustDo(t, d, fakeOp(limiter.Take, "k", 1, &q))
					passed.Add(res.Taken)
				}
			})
		}
		start := time.Now()
		all.Wait()
		if most := 1000 + 10*int64(time.Since(start))/int64(time.Second) + 1; passed.Load() > most {
			t.Errorf("%d passed, at most %d may", passed.Load(), most)
		}
		stop()
	})
}

func TestDeferredAllocatesNothing(t *testing.T) {
	q := fakeQuota(1_000_000, 1_000_000_000)
	d := newDeferred(t, fakeFunc(func(op limiter.Op) (limiter.Result, error) {
		return limiter.Result{Taken: op.N, Decision: rules.Decision{Allowed: true, Limit: 1 << 40, Remaining: 1 << 40}}, nil
	}), limiter.DeferredConfig{Every: 10 * time.Second})
	op := fakeOp(limiter.Take, "k", 1, &q)
	mustDo(t, d, op)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Do(ctx, op) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// More keys than go in one call.
func TestDeferredManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, q := &fakeBatcher{}, fakeQuota(1, 10)
		d := newDeferred(t, b, limiter.DeferredConfig{})
		stop := runInBubble(t, d.Run)
		for range 2 {
			for i := range 2500 {
				mustDo(t, d, fakeOp(limiter.Take, fmt.Sprint(i), 1, &q))
			}
		}
		b.count()
		stop()
		if calls, ops := b.count(); calls < 2 || calls > 3 || len(ops) != 2500 {
			t.Errorf("%d keys in %d calls", len(ops), calls)
		}
	})
}
