package limiter_test

import (
	"context"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
)

// What is around a backend changes nothing of what it promises: with the primary there,
// with it away, and with somebody who is warned.
func TestWrappersConform(t *testing.T) {
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
		"near": func(t *testing.T, b limiter.Backend) limiter.Backend {
			n, err := limiter.NewNear(b, 0.1, func(string, hotparam.Decision) {})
			if err != nil {
				t.Fatal(err)
			}
			return n
		},
	} {
		t.Run(name, func(t *testing.T) {
			limitertest.TestBackend(t, limitertest.Config{
				New:       func(t *testing.T, now func() time.Duration) limiter.Backend { return around(t, memory(t, now)) },
				Schedules: 5,
			})
		})
	}
}
