//go:build !race

package limiter_test

import (
	"context"
	"testing"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// The race detector makes the pool drop objects, so there is nothing to measure under it.
func TestTakeAllAllocatesNothing(t *testing.T) {
	d := rules.Decision{Allowed: true, Limit: 1}
	b := fakeFunc(func(limiter.Op) (limiter.Result, error) { return limiter.Result{Decision: d, Taken: 1}, nil })
	one, two := newNamed(t, b, "one", fakeQuota(1, 5)), newNamed(t, &fakeQuick{b}, "two", fakeQuota(1, 5))
	ctx := context.Background()
	n := testing.AllocsPerRun(1000, func() {
		limiter.AllowAll(ctx, limiter.Claim{Limiter: one, Key: "k", N: 1}, limiter.Claim{Limiter: two, Key: "k", N: 1}, limiter.Claim{Limiter: two, Key: "l", N: 1})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type fakeQuick struct{ fakeFunc }

func (q *fakeQuick) DoAll(_ context.Context, ops []limiter.Op, results []limiter.Result) error {
	for i := range ops {
		results[i], _ = q.fakeFunc(ops[i])
	}
	return nil
}
