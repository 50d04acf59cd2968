package middleware

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
	"github.com/hotparam/hotparam/rules"
)

// patience is longer than a busy machine takes.
const patience = time.Minute

// Two instances share exact limits in a real Redis. When it dies each continues with its own part,
// and requests in progress keep their permits.
func TestExactOnRedis(t *testing.T) {
	server := testenv.Redis(t)
	ruleset := []rules.Rule{
		exactly(limitRule(t, "all", "*", rules.By{}, 1, 100), ""),
		exactly(limitRule(t, "key", "*", byNames("q"), 1, 6), ""),
		exactly(busyRule(t, "busy", byNames("q"), 2, 0), ""),
	}
	instance := func() *fixture { return onRedis(t, server, ruleset) }
	one, two := instance(), instance()
	first, second := letIn(t, one, search), letIn(t, two, search)
	for _, f := range []*fixture{one, two} {
		if d, _ := f.Begin(search); d.Allowed || d.Reason != rules.ReasonBusy || d.Rule != "busy" {
			t.Errorf("%+v", d)
		}
	}
	first.End(Cost{})
	second.End(Cost{})
	for i := range 4 { // what the busy ones had taken is back
		letIn(t, []*fixture{one, two}[i%2], search).End(Cost{})
	}
	for _, f := range []*fixture{one, two} {
		if d, _ := f.Begin(search); d.Allowed || d.Reason != rules.ReasonLimited || d.Rule != "key" {
			t.Errorf("%+v", d)
		}
	}
	held := letIn(t, one, get("GET /s", "/s", "q=2"))
	server.Kill()
	n := 0
	for range 10 {
		if one.Check(get("GET /s", "/s", "q=3")).Allowed {
			n++
		}
	}
	if n != 3 { // a half of six
		t.Errorf("%d passed without Redis, want 3", n)
	}
	held.End(Cost{}) // Redis is down, so the permit cannot be returned
	if s := one.Stats(); s.Panics != 0 || s.Undecided != 0 {
		t.Errorf("%+v", s)
	}
}

// onRedis returns one of two instances whose exact limits are kept in a real Redis.
func onRedis(t *testing.T, server *testenv.RedisServer, ruleset []rules.Rule, opts ...Option) *fixture {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr(), MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { client.Close() })
	store, err := redislimiter.New(client, redislimiter.Config{Namespace: "shop", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	permits, err := redislimiter.NewSemaphore(client, redislimiter.SemaphoreConfig{Namespace: "shop", Name: "a", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	local, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	backend, err := limiter.NewFailover(store, limiter.FailoverConfig{Timeout: patience, Local: local, Instances: func() int { return 2 }})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, rules.Rules{Rules: ruleset}, append([]Option{WithBackend(backend), WithSemaphore(permits)}, opts...)...)
	f.SetInstances(2)
	return f
}

// The clients of two instances give up before their turn, and yet the limit that Redis keeps is
// fully used, by both in turns.
func TestTurnsOnRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	for _, algorithm := range []rules.Algorithm{rules.TokenBucket, rules.SlidingLog} {
		rule := exactly(waitRule(t, string(algorithm), rules.By{}, twentyASecond, 20, 5*time.Second), "")
		rule.Limit.Algorithm = algorithm
		var (
			served [2][]int
			all    sync.WaitGroup
		)
		for i, clients := range []int{60, 8} {
			f := onRedis(t, server, []rules.Rule{rule}, WithClock(sinceEpoch(time.Now())))
			all.Go(func() { served[i] = impatient(f, search, clients, 4) })
		}
		all.Wait()
		if many, few := sum(served[0][1:]), sum(served[1][1:]); many+few < 3*14 || few < 3*3 || many+few > 3*20+20 {
			t.Errorf("%s: served %v and %v by second, want about 20 together, and some of them each", algorithm, served[0], served[1])
		} else {
			t.Log(algorithm, served)
		}
	}
}
