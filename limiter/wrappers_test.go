package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
)

// A wrapper keeps all promises of its backend, whether the primary is available or not.
func TestWrappersConform(t *testing.T) {
	t.Parallel()
	memory := func(t *testing.T, now func() time.Duration) limiter.Backend {
		m, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: 10_000, Clock: now})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for name, around := range map[string]func(*testing.T, limiter.Backend) limiter.Backend{
		"failover": func(t *testing.T, b limiter.Backend) limiter.Backend {
			return newFailover(t, b, limiter.FailoverConfig{Timeout: time.Minute, Local: memory(t, nil)})
		},
		"failover, away": func(t *testing.T, b limiter.Backend) limiter.Backend {
			away := &fakeBatcher{fake{before: func(context.Context, ...limiter.Op) error { return errFakeRefused }}}
			return newFailover(t, away, limiter.FailoverConfig{Timeout: time.Minute, Local: b, MinProbe: time.Hour, MaxProbe: time.Hour})
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitertest.TestBackend(t, limitertest.Config{
				New:       func(t *testing.T, now func() time.Duration) limiter.Backend { return around(t, memory(t, now)) },
				Schedules: 5, Together: true,
			})
		})
	}
}

// A wrapper keeps the effects of one op, or of one node, apart from others, and returns permits to
// the backend that granted them. This holds for each wrapper alone and for any sensible nesting.
func TestWrappersKeepApart(t *testing.T) {
	type wrap func(*testing.T, limiter.Backend) limiter.Backend
	run := func(t *testing.T, run func(context.Context) error) {
		done := make(chan struct{})
		go func() { defer close(done); _ = run(t.Context()) }()
		t.Cleanup(func() { <-done })
	}
	failover := func(t *testing.T, b limiter.Backend) limiter.Backend {
		local, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		f := newFailover(t, b, limiter.FailoverConfig{Local: local, Instances: func() int { return 3 }})
		run(t, f.Run)
		return f
	}
	cached := func(t *testing.T, b limiter.Backend) limiter.Backend {
		c, err := limiter.NewCached(b, limiter.CachedConfig{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, x := range map[string]struct {
		decides bool
		around  []wrap // innermost first
	}{
		"failover":                 {true, []wrap{failover}},
		"cached":                   {false, []wrap{cached}},
		"failover around cached":   {true, []wrap{cached, failover}},
		"failover around failover": {true, []wrap{failover, failover}},
		"all":                      {true, []wrap{cached, failover, cached}},
	} {
		t.Run(name, func(t *testing.T) {
			limitertest.TestWrapper(t, limitertest.WrapperConfig{Decides: x.decides, New: func(t *testing.T, inner limiter.Backend) limiter.Backend {
				for _, w := range x.around {
					inner = w(t, inner)
				}
				return inner
			}})
		})
	}
}
