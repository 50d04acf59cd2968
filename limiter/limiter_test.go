package limiter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func TestNewRefuses(t *testing.T) {
	good := fakeQuota(1, 1)
	for name, c := range map[string]struct {
		backend limiter.Backend
		name    string
		quota   rules.Quota
		want    string
	}{
		"no backend": {nil, "x", good, "no backend"},
		"no name":    {&fake{}, "", good, "no name"},
		"no rate":    {&fake{}, "x", rules.Quota{}, `limiter "x": limit.rate`},
		"rate -1":    {&fake{}, "x", rules.Quota{Rate: rules.Rate{N: -1, Per: time.Second}}, "set Burst to Unlimited"},
		"a typo":     {&fake{}, "x", rules.Quota{Algorithm: "tokenbucket", Rate: good.Rate}, "limit.algorithm"},
	} {
		if _, err := limiter.New(c.backend, c.name, c.quota); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

func TestNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, b := context.Background(), &fake{}
		l := newNamed(t, b, "search", rules.Quota{Rate: rules.Rate{N: 2, Per: time.Second}})
		if q := l.Quota(); q.Algorithm != rules.TokenBucket || q.Burst != 2 || l.Name() != "search" {
			t.Errorf("no defaults in %+v of %s", q, l.Name())
		}
		want := func(what string, d rules.Decision, err error, allowed bool, remaining int64, retry time.Duration) {
			t.Helper()
			if err != nil || d.Allowed != allowed || d.Remaining != remaining || d.RetryAfter != retry || d.Rule != "search" {
				t.Errorf("%s: %+v, %v; want allowed %v, remaining %d, retry after %v", what, d, err, allowed, remaining, retry)
			}
		}
		d, err := l.Peek(ctx, "k", 1)
		want("peek", d, err, true, 2, 0)
		d, err = l.AllowN(ctx, "k", 1)
		want("take", d, err, true, 1, 0)
		n, d, err := l.AllowAtMost(ctx, "k", 5)
		want("at most", d, err, true, 0, 0)
		if n != 1 {
			t.Errorf("at most 5 of 1 took %d", n)
		}
		n, d, err = l.AllowAtMost(ctx, "k", 5)
		want("at most of none", d, err, false, 0, time.Second/2)
		if n != 0 {
			t.Errorf("at most 5 of none took %d", n)
		}
		d, err = l.AllowN(ctx, "other", 2)
		want("another key", d, err, true, 0, 0)

		if err := l.Charge(ctx, "k", 2); err != nil {
			t.Error(err)
		}
		d, err = l.AllowN(ctx, "k", 1)
		want("in debt", d, err, false, 0, 3*time.Second/2)
		if err := l.Charge(ctx, "k", -7); err != nil {
			t.Error(err)
		}
		d, err = l.AllowN(ctx, "k", 1)
		want("a charge below 0", d, err, false, 0, 3*time.Second/2)
		if err := l.Reset(ctx, "k"); err != nil {
			t.Error(err)
		}
		d, err = l.AllowN(ctx, "k", 2)
		want("reset", d, err, true, 0, 0)
	})
}

func TestNamedSetQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		l := newNamed(t, &fake{}, "x", fakeQuota(1, 10))
		if _, err := l.AllowN(ctx, "k", 4); err != nil {
			t.Fatal(err)
		}
		if err := l.SetQuota(fakeQuota(0, 1)); err == nil {
			t.Error("a rate of nothing was accepted")
		}
		if d, _ := l.Peek(ctx, "k", 1); d.Limit != 10 {
			t.Errorf("a bad quota is in force: %+v", d)
		}
		if err := l.SetQuota(fakeQuota(1, 5)); err != nil {
			t.Fatal(err)
		}
		if d, _ := l.Peek(ctx, "k", 1); d.Limit != 5 || d.Remaining != 1 {
			t.Errorf("limit %d, remaining %d; want 5 and 1: what was taken stays taken", d.Limit, d.Remaining)
		}
	})
}

func TestNamedNeedsAKey(t *testing.T) {
	ctx := context.Background()
	l := newNamed(t, &fake{}, "x", fakeQuota(1, 1))
	_, take := l.AllowN(ctx, "", 1)
	_, peek := l.Peek(ctx, "", 1)
	_, _, most := l.AllowAtMost(ctx, "", 1)
	_, reserve := l.Reserve(ctx, "", 1, 0)
	for what, err := range map[string]error{
		"take": take, "peek": peek, "at most": most, "reserve": reserve,
		"wait": l.WaitN(ctx, "", 1), "charge": l.Charge(ctx, "", 1), "reset": l.Reset(ctx, ""),
	} {
		if !errors.Is(err, limiter.ErrNoKey) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNamedTellsWhoseErrorItIs(t *testing.T) {
	away := errors.New("away")
	l := newNamed(t, &fake{before: func(context.Context, ...limiter.Op) error { return away }}, "search", fakeQuota(1, 1))
	d, err := l.AllowN(context.Background(), "secret", 1)
	if !errors.Is(err, away) || !strings.Contains(err.Error(), "search") || strings.Contains(err.Error(), "secret") || d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, b := context.Background(), &fake{}
		l := newNamed(t, b, "x", fakeQuota(1, 2))
		reserve := func(n int64, within, delay time.Duration) limiter.Reservation {
			t.Helper()
			r, err := l.Reserve(ctx, "k", n, within)
			if err != nil || !r.Allowed || r.Delay != delay || r.Rule != "x" {
				t.Fatalf("%+v, %v; want a delay of %v", r.Decision, err, delay)
			}
			return r
		}
		reserve(2, 0, 0)
		second := reserve(1, time.Second, time.Second)
		if r, err := l.Reserve(ctx, "k", 1, time.Second); err != nil || r.Allowed || r.RetryAfter != time.Second {
			t.Errorf("a third: %+v, %v", r.Decision, err)
		} else if err := r.Cancel(ctx); err != nil {
			t.Error(err)
		}
		if r, err := l.Reserve(ctx, "k", 1, -time.Hour); err != nil || r.Allowed || r.RetryAfter != 2*time.Second {
			t.Errorf("within less than nothing: %+v, %v", r.Decision, err)
		}
		b.count()
		for range 2 { // the second time it does nothing
			if err := second.Cancel(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, ops := b.count(); len(ops) != 1 || ops[0].Kind != limiter.Return || ops[0].N != 1 || ops[0].Key != "k" || ops[0].Within != 0 {
			t.Errorf("cancel asked for %+v", ops)
		}
		reserve(1, time.Second, time.Second)
	})
}

func TestReservationGivesBackByItsMark(t *testing.T) {
	var got limiter.Op
	b := fakeFunc(func(op limiter.Op) (limiter.Result, error) {
		got = op
		return limiter.Result{Decision: rules.Decision{Allowed: true}, Taken: op.N, Mark: 77}, nil
	})
	r, err := newNamed(t, b, "x", fakeQuota(1, 9)).Reserve(context.Background(), "k", 3, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Cancel(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got.Request != (limiter.Request{Kind: limiter.Return, N: 3, Mark: 77}) {
		t.Errorf("%+v", got.Request)
	}
}

type fakeFunc func(op limiter.Op) (limiter.Result, error)

func (f fakeFunc) Do(_ context.Context, op limiter.Op) (limiter.Result, error) { return f(op) }

func TestTakeAllocatesNothing(t *testing.T) {
	q, d := fakeQuota(1, 1), rules.Decision{Allowed: true, Limit: 1}
	l := newNamed(t, fakeFunc(func(limiter.Op) (limiter.Result, error) { return limiter.Result{Decision: d, Taken: 1}, nil }), "x", q)
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { _, _ = l.AllowN(ctx, "k", 1) }); n != 0 {
		t.Errorf("Take: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = l.Reserve(ctx, "k", 1, time.Second) }); n != 0 {
		t.Errorf("Reserve: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = l.WaitN(ctx, "k", 1) }); n != 0 {
		t.Errorf("Wait for nothing: %v allocations", n)
	}
}

func TestDeniedError(t *testing.T) {
	d := rules.Decision{Reason: rules.ReasonLimited, Limit: 5, RetryAfter: 1500 * time.Millisecond, Rule: "search"}
	if got, want := (&limiter.DeniedError{Decision: d}).Error(), `limiter "search": denied (limited): retry in 1.5s`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	d.RetryAfter = 0
	if got, want := (&limiter.DeniedError{Decision: d}).Error(), `limiter "search": denied (limited): no retry can pass, the limit is 5`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
