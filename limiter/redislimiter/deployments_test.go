package redislimiter

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/limiter/permits"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// namespaceOf returns a namespace for each test.
func namespaceOf(tb testing.TB) string { return hashOf(tb.Name()) }

// Semaphores, permits, members and settlements work on every kind of Redis deployment that users have.
func TestDeployments(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{
		"single":   func(t *testing.T) string { return testenv.Redis(t).URL() },
		"sentinel": func(t *testing.T) string { return testenv.RedisSentinel(t).URL() },
		"cluster":  func(t *testing.T) string { return testenv.RedisCluster(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := clientAt(t, start(t))
			for name, test := range map[string]func(*testing.T, redis.UniversalClient){
				"semaphore":               semaphoreTable,
				"semaphore never exceeds": semaphoreNeverExceeds,
				"semaphore hints":         semaphoreHints,
				"semaphore conforms":      semaphoreConforms,
				"permits":                 permitsTable,
				"permits conform":         permitsConform,
				"members":                 membersJoinAndLeave,
				"settlements":             settleManyKeys,
			} {
				t.Run(name, func(t *testing.T) { test(t, client) })
			}
		})
	}
}

func semaphoreConforms(t *testing.T, client redis.UniversalClient) {
	limitertest.TestSemaphore(t, limitertest.SemaphoreConfig{New: func(t *testing.T) semaphore.Acquirer {
		s := semaphoreOf(t, client, nil)
		testenv.Running(t, s.Run)
		return s
	}})
}

func permitsConform(t *testing.T, client redis.UniversalClient) {
	limitertest.TestPermits(t, limitertest.PermitsConfig{New: func(t *testing.T, clients int) []permits.RateLimiter {
		name := incarnation() // a case has several
		all := make([]permits.RateLimiter, clients)
		for i := range all {
			all[i] = permitsOf(t, client, func(c *PermitsConfig) { c.Name = name })
		}
		return all
	}})
}

func clientAt(tb testing.TB, url string) redis.UniversalClient {
	tb.Helper()
	client, err := hotkeys.NewClient(testenv.Patient(tb, url))
	must(tb, err)
	tb.Cleanup(func() { client.Close() })
	return client
}

// eventually waits for a condition that should hold soon.
func eventually(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	testenv.Eventually(tb, what, is)
}
