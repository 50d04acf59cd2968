package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Each project has a quota of its own, which comes with the call.
func ExampleLimiter_With() {
	backend, err := limiter.NewMemory(limiter.MemoryConfig{}) // or redislimiter.New(client, …)
	if err != nil {
		panic(err)
	}
	projects, err := limiter.New(backend, "projects", limiter.PerSecond(10))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for range 3 {
		d, err := projects.With(limiter.Per(2, time.Hour)).Allow(ctx, "project:123")
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Allowed, d.Remaining)
	}
	// Output:
	// true 1
	// true 0
	// false 0
}

func TestWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, l := t.Context(), newNamed(t, m, "x", limiter.PerSecond(10))
		wants := func(l *limiter.Limiter, remaining int64) {
			t.Helper()
			if d, err := l.Allow(ctx, "k"); err != nil || !d.Allowed || d.Remaining != remaining || d.Rule != "x" {
				t.Errorf("%+v, %v; want it allowed, with %d left", d, err, remaining)
			}
		}
		wants(l, 9)
		wants(l.With(limiter.PerSecond(5)), 3) // taken permits carry over
		wants(l, 7)
		if got := l.With(limiter.Per(3, time.Minute)).Quota(); got.Burst != 3 || got.Rate.Per != time.Minute {
			t.Errorf("Quota() = %+v", got)
		}
		if got := l.Quota(); got.Burst != 10 {
			t.Errorf("the quota of the limiter itself is %+v", got)
		}
	})
}

func TestWithInvalid(t *testing.T) {
	m, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, q := range map[string]rules.Quota{
		"zero": limiter.PerSecond(0), "negative": limiter.Per(-1, time.Hour), "no rate": {}, "too fast": limiter.PerSecond(rules.MaxRate + 1),
	} {
		l := newNamed(t, m, "x", limiter.PerSecond(1)).With(q)
		_, allow := l.Allow(ctx, "k")
		_, peek := l.Peek(ctx, "k", 1)
		_, reserve := l.Reserve(ctx, "k", 1, time.Second)
		_, all := limiter.AllowAll(ctx, limiter.Claim{Limiter: l, Key: "k", N: 1})
		for what, err := range map[string]error{"Allow": allow, "Peek": peek, "Reserve": reserve, "Wait": l.Wait(ctx, "k"), "AllowAll": all, "Reset": l.Reset(ctx, "k")} {
			if err == nil {
				t.Errorf("%s: %s: no error", name, what)
			}
		}
		if got := l.Quota(); got != (rules.Quota{}) {
			t.Errorf("%s: Quota() = %+v", name, got)
		}
		if err := l.SetQuota(limiter.PerSecond(1)); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Peek(ctx, "k", 1); err != nil || !d.Allowed {
			t.Errorf("%s: with a quota that is valid: %+v, %v", name, d, err)
		}
	}
}
