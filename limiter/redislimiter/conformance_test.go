package redislimiter_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// calm is how long a call may take on a machine that is busy with other tests.
const calm = 20 * time.Second

func TestConforms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	testAll(t, calmClient(t), 20) // TestConformsAtLength runs more schedules, without the race detector
}

// calmClient starts a Redis and returns its client, with long timeouts.
func calmClient(t *testing.T) redis.UniversalClient {
	client := redis.NewClient(&redis.Options{
		Addr: testenv.Redis(t).Addr(), MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: calm, ReadTimeout: calm, WriteTimeout: calm, PoolTimeout: calm,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { client.Close() })
	return client
}

func testAll(t *testing.T, client redis.UniversalClient, schedules int) {
	t.Run("Store", func(t *testing.T) { testStore(t, client, schedules) })
	t.Run("Permits", func(t *testing.T) { testPermits(t, client) })
	t.Run("Semaphore", func(t *testing.T) { testSemaphore(t, client) })
}

// namespaces counts the namespaces in use. Each case has its own.
var namespaces atomic.Int64

func namespace() string { return fmt.Sprint("case", namespaces.Add(1)) }

func testStore(t *testing.T, client redis.UniversalClient, schedules int) {
	_, single := client.(*redis.Client)
	limitertest.TestBackend(t, limitertest.Config{
		New: func(t *testing.T, now func() time.Duration) limiter.Backend {
			s, err := redislimiter.New(client, redislimiter.Config{Namespace: namespace(), Clock: now, Timeout: calm})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Tick:      time.Microsecond,
		Schedules: schedules, Together: single,
	})
}

func testPermits(t *testing.T, client redis.UniversalClient) {
	limitertest.TestPermits(t, limitertest.PermitsConfig{
		New: func(t *testing.T, clients int) []permits.RateLimiter {
			space := namespace()
			all := make([]permits.RateLimiter, clients)
			for i := range all {
				p, err := redislimiter.NewPermits(client, redislimiter.PermitsConfig{Namespace: space, Name: "permits", Client: fmt.Sprint(i), Timeout: calm})
				if err != nil {
					t.Fatal(err)
				}
				all[i] = p
			}
			return all
		},
	})
}

func testSemaphore(t *testing.T, client redis.UniversalClient) {
	limitertest.TestSemaphore(t, limitertest.SemaphoreConfig{
		New: func(t *testing.T) semaphore.Acquirer {
			s, err := redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: namespace(), Lease: time.Minute, Timeout: calm})
			if err != nil {
				t.Fatal(err)
			}
			testenv.Running(t, s.Run)
			return s
		},
	})
}
