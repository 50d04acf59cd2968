package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// manyBehindOne returns n limiters, each with its own quota, behind one Failover of two instances
// whose primary decides in no time.
func manyBehindOne(tb testing.TB, n int) (*limiter.Failover, []limiter.Op) {
	primary := fakeFunc(func(op limiter.Op) (limiter.Result, error) {
		return limiter.Result{Taken: op.N, Decision: rules.Decision{Allowed: true, Limit: op.Quota.Burst, Remaining: 1}}, nil
	})
	local := fakeFunc(func(op limiter.Op) (limiter.Result, error) { return limiter.Result{}, nil })
	f := newFailover(tb, primary, limiter.FailoverConfig{Local: local, Timeout: time.Minute, Instances: func() int { return 2 }})
	var ops []limiter.Op
	for i := range n {
		q := fakeQuota(int64(1000+i), int64(1000+i))
		ops = append(ops, limiter.Op{Quota: &q, Name: fmt.Sprint("limiter ", i), Key: "k", Request: limiter.Request{Kind: limiter.Return, N: 1}})
	}
	return f, ops
}

// However many limiters are behind a Failover, a call costs the same: the shares of their quotas
// are found, not computed again.
func TestManyLimitersBehindOneFailover(t *testing.T) {
	ctx := context.Background()
	few, fewOps := manyBehindOne(t, 1)
	_, _ = few.Do(ctx, fewOps[0])
	base := testing.AllocsPerRun(100, func() { _, _ = few.Do(ctx, fewOps[0]) })
	for _, n := range []int{1024, 4096} {
		f, ops := manyBehindOne(t, n)
		for _, op := range ops {
			_, _ = f.Do(ctx, op)
		}
		i := 0
		if got := testing.AllocsPerRun(2*n, func() { _, _ = f.Do(ctx, ops[i%n]); i++ }); got > base+0.1 {
			t.Errorf("%d limiters: %v allocations a call, one: %v", n, got, base)
		}
	}
}

// A share depends on the quota's value. It is the same for a copy of the quota, and another if the
// quota or the number of instances changes.
func TestPartIsOfTheValue(t *testing.T) {
	instances := 2
	var asked *rules.Quota
	local := fakeFunc(func(op limiter.Op) (limiter.Result, error) { asked = op.Quota; return limiter.Result{}, nil })
	f := newFailover(t, &fake{before: func(context.Context, ...limiter.Op) error { return errFakeRefused }}, limiter.FailoverConfig{
		Local: local, MinProbe: time.Hour, MaxProbe: time.Hour, Instances: func() int { return instances },
	})
	part := func(n int64) *rules.Quota {
		q := fakeQuota(n, n)
		mustDo(t, f, fakeOp(limiter.Take, "k", 1, &q))
		return asked
	}
	first := part(100)
	if first.Burst != 50 || part(100) != first {
		t.Errorf("%+v, then %+v", first, part(100))
	}
	if got := part(60); got.Burst != 30 {
		t.Errorf("%+v", got)
	}
	instances = 5
	if got := part(100); got.Burst != 20 {
		t.Errorf("%+v", got)
	}
}

func BenchmarkManyLimitersBehindOneFailover(b *testing.B) {
	for _, n := range []int{1, 1024, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, ops := manyBehindOne(b, n)
			ctx := context.Background()
			for _, op := range ops {
				_, _ = f.Do(ctx, op)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				_, _ = f.Do(ctx, ops[i%n])
				i++
			}
		})
	}
}
