package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

func TestNearRefuses(t *testing.T) {
	warn := func(string, hotparam.Decision) {}
	for _, share := range []float64{0, -1, 1.1} {
		if _, err := limiter.NewNear(&fake{}, share, warn); err == nil {
			t.Errorf("a share of %v: no error", share)
		}
	}
	if _, err := limiter.NewNear(nil, 0.5, warn); err == nil {
		t.Error("no backend: no error")
	}
	if _, err := limiter.NewNear(&fake{}, 0.5, nil); err == nil {
		t.Error("nobody to warn: no error")
	}
}

func TestNearWarnsOnce(t *testing.T) {
	for name, backend := range map[string]limiter.Backend{"single": fakePartly{fake: &fake{}}, "batcher": &fakeBatcher{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { nearWarnsOnce(t, backend) })
		})
	}
}

func nearWarnsOnce(t *testing.T, backend limiter.Backend) {
	q := fakeQuota(1, 10)
	var warned []int64
	near, err := limiter.NewNear(backend, 0.25, func(name string, d hotparam.Decision) {
		if name != "x" || d.Limit != 10 {
			t.Errorf("warned of %s: %+v", name, d)
		}
		warned = append(warned, d.Remaining)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, remaining ...int64) {
		t.Helper()
		if len(warned) != len(remaining) || len(warned) == 1 && warned[0] != remaining[0] {
			t.Errorf("%s: warned at %v, want %v", what, warned, remaining)
		}
		warned = nil
	}
	mustDo(t, near, fakeOp(limiter.Take, "k", 7, &q))
	want("3 of 10 are not below a quarter")
	mustDo(t, near, fakeOp(limiter.Take, "k", 1, &q))
	want("2 are", 2)
	mustDo(t, near, fakeOp(limiter.Take, "k", 1, &q))
	mustDo(t, near, fakeOp(limiter.Take, "k", 5, &q))
	mustDo(t, near, fakeOp(limiter.Peek, "k", 1, &q))
	later := fakeOp(limiter.Reserve, "k", 5, &q)
	later.Within = time.Hour
	mustDo(t, near, later)
	want("it was already")
	time.Sleep(20 * time.Second)
	batch := []limiter.Op{fakeOp(limiter.Take, "other", 1, &q), fakeOp(limiter.AtMost, "k", 50, &q), fakeOp(limiter.Take, "other", 1, &q)}
	if err := near.DoAll(context.Background(), batch, make([]limiter.Result, 3)); err != nil {
		t.Fatal(err)
	}
	want("it was above meanwhile", 0)
	time.Sleep(10 * time.Second)
	mustDo(t, near, fakeOp(limiter.Charge, "k", 30, &q))
	want("a charge", 0)
	free := hotparam.Quota{Burst: hotparam.Unlimited}
	mustDo(t, near, fakeOp(limiter.Take, "free", 1, &free))
	want("what has no limit")
}
