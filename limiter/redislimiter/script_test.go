package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// trips counts what a client sends.
type trips struct{ single, pipelines atomic.Int64 }

func (h *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.single.Add(1)
		return next(ctx, cmd)
	}
}

func (h *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.pipelines.Add(1)
		return next(ctx, cmds)
	}
}

// want checks how many commands and pipelines were sent since its last call.
func (h *trips) want(tb testing.TB, what string, single, pipelines int64) {
	tb.Helper()
	if s, p := h.single.Swap(0), h.pipelines.Swap(0); s != single || p != pipelines {
		tb.Errorf("%s: %d commands and %d pipelines were sent, want %d and %d", what, s, p, single, pipelines)
	}
}

func clusterClient(tb testing.TB, addrs []string) *redis.ClusterClient {
	tb.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, MaxRetries: -1, ContextTimeoutEnabled: true, DisableRoutingPolicies: true,
		ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience, DialTimeout: patience,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	tb.Cleanup(func() { client.Close() })
	return client
}

// mixed returns takes of 1 of n new keys, with the algorithms in rotation.
func mixed(n int) []limiter.Op {
	var ops []limiter.Op
	first := int(mixedKeys.Add(int64(n)))
	for i := first; i < first+n; i++ {
		q := everyQuota[i%len(everyQuota)]
		ops = append(ops, limiter.Op{Quota: q.quota, Name: q.name, Key: fmt.Sprint("key ", i), Request: limiter.Request{N: 1}})
	}
	return ops
}

var mixedKeys atomic.Int64

func takeAll(tb testing.TB, s *Store, ops []limiter.Op) {
	tb.Helper()
	results := make([]limiter.Result, len(ops))
	must(tb, s.DoAll(context.Background(), ops, results))
	for i, r := range results {
		if !r.Allowed || r.Limit != ops[i].Quota.Burst || r.Taken != ops[i].N {
			tb.Fatalf("%s %s: %+v", ops[i].Name, ops[i].Key, r)
		}
	}
}

func TestOneRoundTrip(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	count := new(trips)
	client.AddHook(count)
	s := storeOf(t, client, nil)
	takeAll(t, s, mixed(len(everyQuota)))
	for _, q := range everyQuota {
		take(t, s, q.quota, "first of its script", 1)
	}
	count.single.Store(0)
	count.pipelines.Store(0) // a connection starts with one
	for _, q := range everyQuota {
		take(t, s, q.quota, "one", 1)
		count.want(t, q.name, 1, 0)
	}
	takeAll(t, s, mixed(500))
	count.want(t, "500 keys", 1, 0)
	unlimited := &rules.Quota{Burst: rules.Unlimited}
	take(t, s, unlimited, "all", 1<<62)
	must(t, s.DoAll(context.Background(), nil, nil))
	count.want(t, "nothing to ask", 0, 0)
}

func TestOneRoundTripInACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	set := testenv.RedisCluster(t)
	count := new(trips)
	client := clusterClient(t, set.Addrs())
	client.AddHook(count)
	apart := storeOf(t, client, nil)
	together := storeOf(t, client, func(c *Config) { c.Tag = func(string, string) string { return "{a}} tag" } })
	takeAll(t, together, mixed(90))
	count.single.Store(0)
	count.pipelines.Store(0)
	takeAll(t, together, mixed(90))
	count.want(t, "one slot", 1, 0)

	// Each of the three masters gets a pipeline, and a second one if it does not know the scripts:
	// at first, and again after they were flushed.
	takeAll(t, apart, mixed(90))
	count.want(t, "servers without the scripts", 0, 6)
	takeAll(t, apart, mixed(90))
	count.want(t, "all slots", 0, 3)
	must(t, client.ForEachMaster(context.Background(), func(ctx context.Context, node *redis.Client) error { return node.ScriptFlush(ctx).Err() }))
	takeAll(t, apart, mixed(90))
	count.want(t, "servers that were flushed", 0, 6)
}

func TestScriptsAreLostMeanwhile(t *testing.T) {
	server := testenv.Redis(t)
	client := storeClient(t, server.Addr(), nil)
	s := storeOf(t, client, nil)
	q := quota(rules.Quota{Rate: rate(10, time.Hour)})
	for i, lose := range []func(){
		func() {},
		func() { must(t, client.ScriptFlush(context.Background()).Err()) },
		func() {},
		func() { must(t, client.ScriptFlush(context.Background()).Err()) },
	} {
		lose()
		if r := take(t, s, q, "key", 1); !r.Allowed || r.Remaining != int64(9-i) {
			t.Fatalf("%d: %+v", i, r)
		}
		takeAll(t, s, mixed(20))
	}
	server.Restart() // as after a failover to one that knows nothing
	for range 100 {  // the old connections fail one by one
		if _, err := s.Do(context.Background(), limiter.Op{Quota: q, Name: "limit", Key: "other", Request: limiter.Request{Kind: limiter.Peek, N: 1}}); err == nil {
			break
		}
	}
	if r := take(t, s, q, "key", 1); !r.Allowed || r.Remaining != 9 {
		t.Fatalf("a new server: %+v", r)
	}
}

// A lost answer must not make the client ask again, whatever its options.
func TestNothingIsRepeated(t *testing.T) {
	server := testenv.Redis(t)
	direct := storeOf(t, storeClient(t, server.Addr(), nil), nil)
	q := quota(rules.Quota{Rate: rate(100, time.Hour)})
	takeAll(t, direct, mixed(9)) // the scripts are known
	take(t, direct, q, "key", 1)
	relay := testenv.NewRelay(t, server.Addr())
	client := storeClient(t, relay.Addr(), func(o *redis.Options) { o.MaxRetries = 5 })
	s := storeOf(t, client, nil)
	must(t, client.Ping(context.Background()).Err())
	relay.LoseAnswer()
	if _, err := s.Do(context.Background(), limiter.Op{Quota: q, Name: "limit", Key: "key", Request: limiter.Request{N: 1}}); err == nil {
		t.Fatal("an answer that never came is none")
	}
	if r := take(t, direct, q, "key", 0); r.Remaining != 98 {
		t.Errorf("%d remain of 100 after one take, and one whose answer was lost", r.Remaining)
	}
}

func TestRedisIsAway(t *testing.T) {
	server := testenv.Redis(t)
	client := storeClient(t, server.Addr(), nil) // whose own time-outs are 20 s
	s := storeOf(t, client, func(c *Config) { c.Timeout = 30 * time.Millisecond })
	q := quota(rules.Quota{Rate: rate(10, time.Hour)})
	op := limiter.Op{Quota: q, Name: "limit", Key: "key", Request: limiter.Request{N: 1}}
	patient, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := s.Do(patient, op)
	must(t, err)
	within := func(what string, ctx context.Context, want error) {
		t.Helper()
		begin := time.Now()
		_, err := s.Do(ctx, op)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if took := time.Since(begin); took > patience/2 {
			t.Errorf("%s: it took %v", what, took)
		}
	}
	server.Pause()
	within("no deadline but the store's", context.Background(), nil)
	short, cancelShort := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancelShort()
	within("the context's deadline", short, nil)
	ended, end := context.WithCancel(context.Background())
	end()
	within("a context that has ended", ended, context.Canceled)
	server.Resume()
	server.Kill()
	within("nobody listens", context.Background(), nil)
}
