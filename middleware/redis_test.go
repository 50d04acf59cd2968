package middleware

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/redislimiter"
)

// patience is more than a busy machine takes.
const patience = time.Minute

// Two instances share what is exact by a real Redis; when it dies each goes on with its
// part, and who is served keeps his permit.
func TestExactOnRedis(t *testing.T) {
	server := testenv.Redis(t)
	rules := []hotparam.Rule{
		exactly(limitRule(t, "all", "*", hotparam.By{}, 1, 100), ""),
		exactly(limitRule(t, "key", "*", byNames("q"), 1, 6), ""),
		exactly(busyRule(t, "busy", byNames("q"), 2, 0), ""),
	}
	instance := func() *fixture {
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
		f := newFixture(t, hotparam.Rules{Rules: rules}, WithBackend(backend), WithSemaphore(permits))
		f.SetInstances(2)
		return f
	}
	one, two := instance(), instance()
	first, second := letIn(t, one, search), letIn(t, two, search)
	for _, f := range []*fixture{one, two} {
		if d, _ := f.Begin(search); d.Allowed || d.Reason != hotparam.ReasonBusy || d.Rule != "busy" {
			t.Errorf("%+v", d)
		}
	}
	first.End(Cost{})
	second.End(Cost{})
	for i := range 4 { // what the busy ones had taken is back
		letIn(t, []*fixture{one, two}[i%2], search).End(Cost{})
	}
	for _, f := range []*fixture{one, two} {
		if d, _ := f.Begin(search); d.Allowed || d.Reason != hotparam.ReasonLimited || d.Rule != "key" {
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
	held.End(Cost{}) // nobody is there to take it
	if s := one.Stats(); s.Panics != 0 || s.Undecided != 0 {
		t.Errorf("%+v", s)
	}
}
