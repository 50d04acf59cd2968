package limitertest_test

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/rules"
)

// A test of your own backend, which only takes, and only from token buckets.
func ExampleTestBackend() {
	var t *testing.T // func TestMine(t *testing.T)
	limitertest.TestBackend(t, limitertest.Config{
		New: func(t *testing.T, now func() time.Duration) limiter.Backend {
			backend, err := limiter.NewMemory(limiter.MemoryConfig{Clock: now}) // mine.New(now)
			if err != nil {
				t.Fatal(err)
			}
			return backend
		},
		Supports: func(q *rules.Quota, kind limiter.OpKind) bool {
			return q.Algorithm == rules.TokenBucket && q.Penalty == 0 && kind == limiter.Take
		},
	})
}
