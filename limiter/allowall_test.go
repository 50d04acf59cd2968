package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func TestTakeAllOfNothing(t *testing.T) {
	if d, err := limiter.AllowAll(context.Background()); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTakeAllInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, b, alone := context.Background(), &fakeBatcher{}, &fake{}
		user, all := newNamed(t, b, "user", fakeQuota(1, 3)), newNamed(t, b, "all", fakeQuota(1, 4))
		other := newNamed(t, alone, "other", fakeQuota(1, 9))
		asked := []limiter.Claim{{Limiter: user, Key: "u", N: 2}, {Limiter: other, Key: "o", N: 1}, {Limiter: all, Key: "*", N: 1}}

		d, err := limiter.AllowAll(ctx, asked...)
		if err != nil || !d.Allowed || d.Rule != "user" || d.Remaining != 1 || d.Limit != 3 {
			t.Errorf("the tightest is not told: %+v, %v", d, err)
		}
		if calls, _ := b.count(); calls != 1 {
			t.Errorf("%d calls for two limits of one batcher", calls)
		}
		alone.count()

		d, err = limiter.AllowAll(ctx, asked...)
		if err != nil || d.Allowed || d.Rule != "user" || d.RetryAfter != time.Second {
			t.Errorf("%+v, %v", d, err)
		}
		if calls, ops := b.count(); calls != 2 || len(ops) != 3 || ops[2].Kind != limiter.Return || ops[2].Name != "all" {
			t.Errorf("%d calls: %+v", calls, ops)
		}
		if calls, ops := alone.count(); calls != 1 || ops[0].Kind != limiter.Peek {
			t.Errorf("%d calls: %+v", calls, ops)
		}
		for l, want := range map[*limiter.Limiter]int64{user: 1, all: 3, other: 8} {
			key := map[*limiter.Limiter]string{user: "u", all: "*", other: "o"}[l]
			if d, _ := l.Peek(ctx, key, 1); d.Remaining != want {
				t.Errorf("%s: %d remain, want %d", l.Name(), d.Remaining, want)
			}
		}
	})
}

func TestTakeAllReturnsInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBatcher{}
		asked := []limiter.Claim{{Limiter: newNamed(t, b, "never", fakeQuota(1, 1)), Key: "k", N: 2}}
		for i := range 4 {
			asked = append(asked, limiter.Claim{Limiter: newNamed(t, b, fmt.Sprint(i), fakeQuota(1, 5)), Key: "k", N: 1})
		}
		if d, err := limiter.AllowAll(context.Background(), asked...); err != nil || d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		if calls, ops := b.count(); calls != 2 || len(ops) != 5+4 {
			t.Errorf("%d calls, %d ops", calls, len(ops))
		}
	})
}

func TestTakeAllTellsTheLongestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, b := context.Background(), &fakeBatcher{}
		slow, fast := newNamed(t, b, "slow", fakeQuota(1, 1)), newNamed(t, b, "fast", fakeQuota(10, 1))
		free := newNamed(t, b, "free", rules.Quota{Burst: rules.Unlimited})
		for _, l := range []*limiter.Limiter{slow, fast} {
			l.AllowN(ctx, "k", 1)
		}
		ask := func(l *limiter.Limiter, n int64) limiter.Claim { return limiter.Claim{Limiter: l, Key: "k", N: n} }
		for name, c := range map[string]struct {
			asked []limiter.Claim
			rule  string
			retry time.Duration
		}{
			"longest last":  {[]limiter.Claim{ask(free, 1), ask(fast, 1), ask(slow, 1)}, "slow", time.Second},
			"longest first": {[]limiter.Claim{ask(slow, 1), ask(fast, 1), ask(free, 1)}, "slow", time.Second},
			"never last":    {[]limiter.Claim{ask(slow, 1), ask(fast, 2)}, "fast", 0},
			"never first":   {[]limiter.Claim{ask(fast, 2), ask(slow, 1)}, "fast", 0},
			"two never":     {[]limiter.Claim{ask(fast, 2), ask(slow, 2)}, "fast", 0},
		} {
			d, err := limiter.AllowAll(ctx, c.asked...)
			if err != nil || d.Allowed || d.Rule != c.rule || d.RetryAfter != c.retry {
				t.Errorf("%s: %+v, %v; want %s, retry after %v", name, d, err, c.rule, c.retry)
			}
		}
		time.Sleep(time.Second)
		if d, err := limiter.AllowAll(ctx, ask(free, 1), ask(slow, 1), ask(free, 1)); err != nil || !d.Allowed || d.Rule != "slow" {
			t.Errorf("what has no limit is told: %+v, %v", d, err)
		}
	})
}

func TestTakeAllHasTheLongestDelay(t *testing.T) {
	shaped := func(delay time.Duration, remaining int64) limiter.Backend {
		return fakeFunc(func(op limiter.Op) (limiter.Result, error) {
			return limiter.Result{Taken: op.N, Decision: rules.Decision{Allowed: true, Limit: 9, Remaining: remaining, Delay: delay}}, nil
		})
	}
	d, err := limiter.AllowAll(context.Background(),
		limiter.Claim{Limiter: newNamed(t, shaped(time.Second, 8), "a", fakeQuota(1, 1)), Key: "k", N: 1},
		limiter.Claim{Limiter: newNamed(t, shaped(time.Minute, 7), "b", fakeQuota(1, 1)), Key: "k", N: 1},
		limiter.Claim{Limiter: newNamed(t, shaped(0, 1), "c", fakeQuota(1, 1)), Key: "k", N: 1})
	if err != nil || !d.Allowed || d.Rule != "c" || d.Delay != time.Minute {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTakeAllKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newNamed(t, &fakeBatcher{}, "x", fakeQuota(1, 3))
		low := limiter.Claim{Limiter: l, Key: "k", N: 1, Keep: 2}
		if d, err := limiter.AllowAll(context.Background(), low); err != nil || !d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
		if d, err := limiter.AllowAll(context.Background(), low); err != nil || d.Allowed || d.RetryAfter != time.Second {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestTakeAllErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		dead := newNamed(t, &fakeBatcher{fake{before: func(context.Context, ...limiter.Op) error { return away }}}, "dead", fakeQuota(1, 5))
		well := newNamed(t, &fake{}, "well", fakeQuota(1, 5))
		ok := limiter.Claim{Limiter: well, Key: "k", N: 1}
		for name, c := range map[string]struct {
			asked []limiter.Claim
			want  error
		}{
			"no key":      {[]limiter.Claim{ok, {Limiter: well, N: 1}}, limiter.ErrNoKey},
			"no limiter":  {[]limiter.Claim{ok, {Key: "k", N: 1}}, nil},
			"away":        {[]limiter.Claim{ok, {Limiter: dead, Key: "k", N: 1}}, away},
			"away, twice": {[]limiter.Claim{ok, {Limiter: dead, Key: "k", N: 1}, {Limiter: dead, Key: "l", N: 1}}, away},
		} {
			d, err := limiter.AllowAll(context.Background(), c.asked...)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || d.Allowed {
				t.Errorf("%s: %+v, %v", name, d, err)
			}
			if d, _ := well.Peek(context.Background(), "k", 1); d.Remaining != 5 {
				t.Errorf("%s: something stayed taken: %+v", name, d)
			}
		}
	})
}

// Permits are returned even if the request has ended in between.
func TestTakeAllGivesBackForAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		b := &fakeBatcher{}
		b.before = func(ctx context.Context, ops ...limiter.Op) error {
			if ctx.Err() == nil && ops[0].Kind == limiter.Take {
				defer cancel()
			}
			return ctx.Err()
		}
		l, none := newNamed(t, b, "x", fakeQuota(1, 5)), newNamed(t, b, "none", fakeQuota(1, 1))
		if d, err := limiter.AllowAll(ctx, limiter.Claim{Limiter: l, Key: "k", N: 1}, limiter.Claim{Limiter: none, Key: "k", N: 2}); err != nil || d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
		if d, _ := l.Peek(context.Background(), "k", 1); d.Remaining != 5 {
			t.Errorf("something stayed taken: %+v", d)
		}
	})
}

// fakeOdd is a batcher that cannot be compared, so each op is asked separately.
type fakeOdd struct {
	*fakeBatcher
	_ []int
}

func TestTakeAllOfBackendsThatCannotBeCompared(t *testing.T) {
	b := fakeOdd{fakeBatcher: &fakeBatcher{}}
	one, two := newNamed(t, b, "one", fakeQuota(1, 5)), newNamed(t, b, "two", fakeQuota(1, 5))
	if d, err := limiter.AllowAll(context.Background(), limiter.Claim{Limiter: one, Key: "k", N: 1}, limiter.Claim{Limiter: two, Key: "k", N: 1}); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

// Asking all limits at once has the same result as asking one after the other and returning the
// permits on a denial, on any backends.
func TestTakeAllIsEachInTurn(t *testing.T) {
	checkInBubble(t, takeAllInTurn)
}

func takeAllInTurn(t *rapid.T) {
	ctx := context.Background()
	batcher, another, plain, model := &fakeBatcher{}, &fakeBatcher{}, &fake{}, &fake{}
	var limiters, models []*limiter.Limiter
	for i := range rapid.IntRange(1, 5).Draw(t, "limits") {
		q := fakeQuota(rapid.Int64Range(1, 5).Draw(t, "rate"), rapid.Int64Range(1, 6).Draw(t, "burst"))
		b := []limiter.Backend{batcher, another, plain}[rapid.IntRange(0, 2).Draw(t, "backend")]
		l, err := limiter.New(b, fmt.Sprint(i), q)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := limiter.New(model, fmt.Sprint(i), q)
		limiters, models = append(limiters, l), append(models, m)
	}
	for range rapid.IntRange(1, 20).Draw(t, "requests") {
		time.Sleep(time.Duration(rapid.IntRange(0, 400).Draw(t, "pause")) * time.Millisecond)
		var asked []limiter.Claim
		var single []limiter.Reservation
		allowed, twice := true, false
		for range rapid.IntRange(1, 6).Draw(t, "asked") {
			i := rapid.IntRange(0, len(limiters)-1).Draw(t, "limit")
			a := limiter.Claim{Limiter: limiters[i], Key: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), N: rapid.Int64Range(-1, 6).Draw(t, "n")}
			twice = twice || slices.ContainsFunc(asked, func(b limiter.Claim) bool { return a.Limiter == b.Limiter && a.Key == b.Key })
			asked = append(asked, a)
			r, err := models[i].Reserve(ctx, a.Key, a.N, 0)
			if err != nil {
				t.Fatal(err)
			}
			single, allowed = append(single, r), allowed && r.Allowed
		}
		got, err := limiter.AllowAll(ctx, asked...)
		if err != nil || got.Allowed != allowed {
			t.Fatalf("%+v, %v; want allowed %v", got, err, allowed)
		}
		if twice && !allowed { // each result depends on what the earlier ones have taken
			single = slices.DeleteFunc(single, func(r limiter.Reservation) bool { r.Cancel(ctx); return true })
		} else if !slices.ContainsFunc(single, func(r limiter.Reservation) bool { return r.Decision == got }) {
			t.Fatalf("%+v is none of what each says: %+v", got, single)
		}
		for _, r := range single {
			switch {
			case allowed && r.Remaining < got.Remaining:
				t.Fatalf("%+v is tighter than %+v", r.Decision, got)
			case !allowed && !r.Allowed && (r.RetryAfter == 0) && got.RetryAfter != 0, !allowed && got.RetryAfter != 0 && r.RetryAfter > got.RetryAfter:
				t.Fatalf("%+v is later than %+v", r.Decision, got)
			}
			if !allowed {
				r.Cancel(ctx)
			}
		}
		for i := range limiters {
			for _, key := range []string{"a", "b"} {
				got, _ := limiters[i].Peek(ctx, key, 1)
				want, _ := models[i].Peek(ctx, key, 1)
				if got != want {
					t.Fatalf("limit %d, key %s: %+v, want %+v", i, key, got, want)
				}
			}
		}
	}
}
