package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/rules"
)

// awayOf returns a Failover around a store, as one of ten instances. It probes.
func awayOf(t *testing.T, s *Store, log *testenv.LogBuffer) *limiter.Failover {
	f, err := limiter.NewFailover(s, limiter.FailoverConfig{
		Timeout: 2 * time.Second, Instances: func() int { return 10 }, MinProbe: 20 * time.Millisecond, MaxProbe: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	must(t, err)
	testenv.Running(t, f.Run)
	return f
}

// hundred is a quota of 100, so that each of ten instances has a share of ten.
var hundred = quota(rules.Quota{Rate: rate(100, time.Hour)})

func opOf(key string) limiter.Op {
	return limiter.Op{Quota: hundred, Name: "limit", Key: key, Request: limiter.Request{N: 1}}
}

// byRedis reports whether Redis decided, rather than the instance by its tenth.
func byRedis(t *testing.T, b limiter.Backend, key string) bool {
	t.Helper()
	r, err := b.Do(t.Context(), opOf(key))
	must(t, err)
	return r.Limit == 100
}

func TestForeignKeyHeals(t *testing.T) {
	t.Parallel()
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	s := storeOf(t, client, nil)
	f := awayOf(t, s, new(testenv.LogBuffer))
	for round, how := range []string{"Do", "DoAll"} {
		var ops []limiter.Op
		for i := range 10 {
			ops = append(ops, opOf(fmt.Sprint(how, i)))
		}
		for _, every := range everyQuota {
			ops = append(ops, limiter.Op{Quota: every.quota, Name: every.name, Key: how, Request: limiter.Request{N: 1}})
		}
		results := make([]limiter.Result, len(ops))
		for range 2 { // then with a known script
			for _, op := range ops[5:] {
				key, _ := s.keyName(op.Name, op.Key)
				must(t, client.Del(t.Context(), key).Err())
				must(t, client.LPush(t.Context(), key, "foreign").Err())
			}
			before := s.Stats().Healed
			if how == "DoAll" {
				must(t, f.DoAll(t.Context(), ops, results))
			} else {
				for i, op := range ops {
					var err error
					results[i], err = f.Do(t.Context(), op)
					must(t, err)
				}
			}
			for i, r := range results {
				if r.Limit != ops[i].Quota.Burst || !r.Allowed || r.Taken != 1 {
					t.Errorf("%d, %s %s: %+v", round, ops[i].Name, ops[i].Key, r)
				}
			}
			if healed := s.Stats().Healed - before; healed != uint64(len(ops)-5) {
				t.Errorf("%s: %d healed, want %d", how, healed, len(ops)-5)
			}
		}
		if r := ask(t, s, limiter.Op{Quota: hundred, Key: how + "0", Request: limiter.Request{Kind: limiter.Peek, N: 1}}); r.Remaining != 98 {
			t.Errorf("%s: a sound key beside them: %+v", how, r)
		}
	}
	if st := f.Stats(); st != (limiter.FailoverStats{}) {
		t.Errorf("%+v", st)
	}
}

// A quota that Redis cannot compute with fails alone.
func TestRefusedQuotaAlone(t *testing.T) {
	t.Parallel()
	s := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), nil)
	f := awayOf(t, s, new(testenv.LogBuffer))
	beyond := &rules.Quota{Rate: rate(rules.MaxRate, time.Second), Burst: 1 << 54}
	ops := []limiter.Op{opOf("a"), {Quota: beyond, Name: "beyond", Key: "k", Request: limiter.Request{N: 1}}, opOf("b")}
	results := make([]limiter.Result, len(ops))
	for range 3 {
		must(t, f.DoAll(t.Context(), ops, results))
		if results[0].Limit != 100 || results[2].Limit != 100 || !results[1].Allowed || results[1].Limit == 1<<54 {
			t.Fatalf("%+v", results)
		}
		_, err := f.Do(t.Context(), ops[1])
		must(t, err)
		if !byRedis(t, f, "c") {
			t.Fatal("another key was not decided by Redis")
		}
	}
	if st := f.Stats(); st.OpErrors != 6 || st.Failures != 0 {
		t.Errorf("%+v", st)
	}
	var alone *limiter.OpError
	if _, err := s.Do(t.Context(), ops[1]); !errors.As(err, &alone) {
		t.Error(err)
	}
}

// A server that answers reads but refuses writes is unavailable until it accepts a write. It does
// not flap: the log has one line for the start of the outage and one for its end.
func TestAwayUntilAWrite(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]struct{ refuse, mend []any }{
		"out of memory":    {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		"read-only":        {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}},
		"too few replicas": {[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := storeClient(t, testenv.Redis(t).Addr(), nil)
			s, log := storeOf(t, client, nil), new(testenv.LogBuffer)
			f := awayOf(t, s, log)
			must(t, client.Do(t.Context(), "CONFIG", "SET", "maxmemory-policy", "noeviction").Err())
			if !byRedis(t, f, "k") {
				t.Fatal("Redis does not decide")
			}
			must(t, client.Do(t.Context(), set.refuse...).Err())
			if byRedis(t, f, "k") {
				t.Fatal("it wrote all the same")
			}
			_, err := s.Do(t.Context(), limiter.Op{Quota: hundred, Name: "limit", Key: "k", Request: limiter.Request{Kind: limiter.Peek, N: 1}})
			if err != nil && name == "out of memory" {
				t.Errorf("a read: %v", err)
			}
			probes := f.Stats().Probes
			eventually(t, "ten probes", func() bool {
				if byRedis(t, f, "k") {
					t.Fatal("Redis was asked before it wrote")
				}
				return f.Stats().Probes > probes+10
			})
			if st := f.Stats(); st.Failures != 1 || st.Nodes != 1 {
				t.Errorf("%+v", st)
			}
			must(t, client.Do(t.Context(), set.mend...).Err())
			eventually(t, "Redis's own decision", func() bool { return byRedis(t, f, "k") })
			if text := log.String(); strings.Count(text, "level=WARN") != 1 || strings.Count(text, "level=INFO") != 1 || strings.Count(text, "\n") != 2 {
				t.Errorf("log:\n%s", text)
			}
			if left := client.Keys(t.Context(), "*:probe").Val(); len(left) > 1 {
				t.Errorf("%q", left)
			}
		})
	}
}

// One of three masters is dead, and so is its replica. Redis still decides about the keys of the
// other two, even if all keys are asked at once.
func TestOneMasterLost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	set := testenv.RedisCluster(t)
	for _, addr := range set.Addrs() {
		node := storeClient(t, addr, nil)
		must(t, node.Do(t.Context(), "CONFIG", "SET", "cluster-require-full-coverage", "no").Err())
		must(t, node.Do(t.Context(), "CONFIG", "SET", "cluster-replica-no-failover", "yes").Err())
	}
	client, log := clusterClient(t, set.Addrs()), new(testenv.LogBuffer)
	s := storeOf(t, client, nil)
	f := awayOf(t, s, log)
	const keys = 60
	var ops []limiter.Op
	owner := map[string][]int{}
	for i := range keys {
		op := opOf(fmt.Sprint("key ", i))
		ops = append(ops, op)
		node := s.Node(t.Context(), op)
		owner[node] = append(owner[node], i)
	}
	if len(owner) != 3 {
		t.Fatalf("%d masters", len(owner))
	}
	results := make([]limiter.Result, keys)
	must(t, f.DoAll(t.Context(), ops, results))
	first, _ := s.keyName(ops[0].Name, ops[0].Key)
	dead := s.Node(t.Context(), ops[0])
	set.Master(first).Kill()
	check := func(what string, batch bool) {
		t.Helper()
		decided := 0
		if batch {
			must(t, f.DoAll(t.Context(), ops, results))
		}
		for i, op := range ops {
			if !batch {
				var err error
				results[i], err = f.Do(t.Context(), op)
				must(t, err)
			}
			lost := s.Node(t.Context(), op) == dead
			if got := results[i].Limit == 100; got == lost {
				t.Errorf("%s: %s: decided by Redis: %t, its master lost: %t", what, op.Key, got, lost)
			} else if got {
				decided++
			}
		}
		if want := keys - len(owner[dead]); decided != want {
			t.Errorf("%s: %d of %d keys were decided by Redis, want %d", what, decided, keys, want)
		}
	}
	check("the batch that meets it", true)
	check("each by itself", false)
	check("all at once", true)
	if st := f.Stats(); st.Nodes != 1 || st.OpErrors != 0 {
		t.Errorf("%+v", st)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "node="+dead) {
		t.Errorf("log:\n%s", text)
	}
}

// After a replica takes the primary's place, the limits use it without any action.
func TestBackAfterAFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	set := testenv.RedisSentinel(t)
	s, log := storeOf(t, clientAt(t, set.URL()), nil), new(testenv.LogBuffer)
	f := awayOf(t, s, log)
	if !byRedis(t, f, "k") {
		t.Fatal("Redis does not decide")
	}
	former := set.Primary()
	set.KillPrimary()
	eventually(t, "a decision without Redis", func() bool { return !byRedis(t, f, "k") })
	set.AwaitFailover(former)
	eventually(t, "a decision of the new primary", func() bool { return byRedis(t, f, "k") })
}

// A caller whose deadline passes gets the context's error, whatever error the connection returns.
// The test makes 400 calls with deadlines about as long as an answer takes.
func TestDeadlinesAreContextErrors(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	s := storeOf(t, storeClient(t, server.Addr(), func(o *redis.Options) { o.PoolSize = 4 }), nil)
	ask(t, s, opOf("k"))
	server.Pause()
	defer server.Resume()
	f := awayOf(t, s, new(testenv.LogBuffer))
	var all sync.WaitGroup
	var mu sync.Mutex
	failed := 0
	for i := range 400 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%40)*time.Millisecond)
			defer cancel()
			var err error
			switch i % 3 {
			case 0:
				_, err = s.Do(ctx, opOf("k"))
			case 1:
				err = s.DoAll(ctx, []limiter.Op{opOf("k"), opOf("l")}, make([]limiter.Result, 2))
			default:
				_, err = f.Do(ctx, opOf("k"))
			}
			if err == nil {
				return // decided without Redis
			}
			mu.Lock()
			defer mu.Unlock()
			if failed++; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if failed < 200 {
		t.Errorf("%d failed", failed)
	}
}

// A server that refuses writes refuses permits until it accepts writes again. The log has one line
// for the start of the outage and one for its end.
func TestSemaphoreAwayUntilAWrite(t *testing.T) {
	t.Parallel()
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	log := new(testenv.LogBuffer)
	s := semaphoreOf(t, client, func(c *SemaphoreConfig) {
		c.Timeout, c.Retry, c.Logger = 2*time.Second, 20*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
	})
	testenv.Running(t, s.Run)
	p := permitsOf(t, client, func(c *PermitsConfig) { c.Timeout, c.Retry = 2*time.Second, 20*time.Millisecond })
	must(t, p.SetRate(t.Context(), permitRate(1000, time.Hour)))
	acquire := func() error {
		l, _, err := s.Acquire(t.Context(), "k", semaphore.Request{Permits: 1000})
		if l != noLease {
			l.Release()
		}
		return err
	}
	must(t, acquire())
	must(t, client.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "1").Err())
	if acquire() == nil {
		t.Fatal("it wrote all the same")
	}
	if _, err := p.TryAcquire(t.Context(), 1); err == nil || errors.Is(err, ErrUnavailable) {
		t.Fatalf("permits: %v", err)
	}
	for before := s.gate.breakers.Stats().Probes; s.gate.breakers.Stats().Probes < before+10; time.Sleep(time.Millisecond) {
		if err := acquire(); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		if _, err := p.TryAcquire(t.Context(), 1); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("permits: %v", err)
		}
	}
	must(t, client.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "0").Err())
	eventually(t, "a permit", func() bool { return acquire() == nil })
	eventually(t, "a permit of the object", func() bool { ok, err := p.TryAcquire(t.Context(), 1); return err == nil && ok })
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || strings.Count(text, "level=INFO") != 1 || strings.Count(text, "\n") != 2 {
		t.Errorf("log:\n%s", text)
	}
}

// A failed op of a batch does not shift the keys of the ops after it.
func TestFailedOpsShiftNothing(t *testing.T) {
	t.Parallel()
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	s := storeOf(t, client, nil)
	penalty := quota(rules.Quota{Rate: rate(100, time.Hour), Penalty: time.Minute})
	for key, n := range map[string]int64{"a": 1, "b": 2, "c": 3} {
		op := opOf(key)
		op.N = n
		ask(t, s, op)
	}
	must(t, client.Do(t.Context(), "CONFIG", "SET", "min-replicas-to-write", "1").Err())
	var ops []limiter.Op
	for _, key := range []string{"a", "b", "c"} {
		forget, take, peek := opOf(key), opOf(key), opOf(key)
		forget.Kind, peek.Kind = limiter.Forget, limiter.Peek
		take.Quota = penalty
		ops = append(ops, forget, take, peek)
	}
	results := make([]limiter.Result, len(ops))
	err := s.DoAll(t.Context(), ops, results)
	var alone *limiter.OpError
	for i := range ops {
		failed := limiter.ErrorOf(err, i)
		if writes := i%3 < 2; writes != (failed != nil) || errors.As(failed, &alone) {
			t.Errorf("%d: %v", i, failed)
		} else if want := 100 - int64(i/3+1); !writes && results[i].Remaining != want {
			t.Errorf("%s: %d remain, want %d", ops[i].Key, results[i].Remaining, want)
		}
	}
}
