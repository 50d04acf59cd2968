package redislimiter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// stalledFlood is a flood of requests for many keys during which Redis stops for a while.
type stalledFlood struct {
	instances, keys int
	limit           int64 // the limit of each key
	stall           time.Duration
	at              int64 // the request at which Redis stops
	asks, rate      int64 // the rate is per second
}

// run returns how many requests of each key were admitted, the longest time that one took, and the
// backends.
func (c stalledFlood) run(t *testing.T, server *testenv.RedisServer, name string) (admitted []atomic.Int64, longest time.Duration, all []*limiter.Failover) {
	t.Helper()
	for range c.instances {
		client := storeClient(t, server.Addr(), func(o *redis.Options) { o.PoolSize = 40 })
		cached, err := limiter.NewCached(storeOf(t, client, nil), limiter.CachedConfig{})
		must(t, err)
		f, err := limiter.NewFailover(cached, limiter.FailoverConfig{Instances: func() int { return c.instances }})
		must(t, err)
		testenv.Running(t, f.Run)
		all = append(all, f)
	}
	q := quota(rules.Quota{Rate: rate(c.limit, time.Hour)})
	var (
		worst   atomic.Int64
		callers sync.WaitGroup
	)
	admitted = make([]atomic.Int64, c.keys)
	start := time.Now()
	for i := range c.asks {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(c.rate))))
		if i == c.at && c.stall > 0 {
			server.Pause()
			callers.Go(func() {
				time.Sleep(c.stall)
				server.Resume()
			})
		}
		callers.Go(func() {
			k := rand.IntN(c.keys)
			op := limiter.Op{Quota: q, Name: name, Key: fmt.Sprint(k), Request: limiter.Request{N: 1}}
			began := time.Now()
			r, err := all[rand.IntN(len(all))].Do(t.Context(), op)
			if took := int64(time.Since(began)); took > worst.Load() {
				worst.Store(took)
			}
			if err != nil {
				t.Errorf("%v", err)
				return
			}
			admitted[k].Add(r.Taken)
		})
	}
	callers.Wait()
	return admitted, time.Duration(worst.Load()), all
}

// Redis stalls once in a flood of requests. One instance admits at most the limit of each key, and
// each of several at most its share more.
func TestStall(t *testing.T) {
	server := testenv.Redis(t)
	for _, instances := range []int{1, 3} {
		for i, stall := range []time.Duration{200 * time.Millisecond, 45 * time.Millisecond, 0}[:testenv.Cases(3, 1)] {
			c := stalledFlood{instances: instances, keys: 200, limit: 6, stall: stall, at: 600, asks: 4_000, rate: 4_000}
			admitted, longest, all := c.run(t, server, fmt.Sprint(instances, "-", i))
			sum, most := int64(0), int64(0)
			for k := range admitted {
				n := admitted[k].Load()
				sum, most = sum+n, max(most, n)
			}
			t.Logf("%d instances, stall %v: %d admitted, at most %d of a key, longest %v, %+v", instances, stall, sum, most, longest, all[0].Stats())
			part := c.limit / int64(instances)
			if bound := c.limit + int64(instances-1)*part; most > bound {
				t.Errorf("%d instances, stall %v: %d of a key were admitted, the limit is %d", instances, stall, most, c.limit)
			}
		}
	}
}

// A script that begins after its caller's deadline takes nothing. A wrong estimate of Redis's clock
// is corrected within the call.
func TestDeadlineByRedisClock(t *testing.T) {
	s := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), nil)
	q := quota(rules.Quota{Rate: rate(6, time.Hour)})
	take(t, s, q, "key", 1)
	p, err := newPlan(q)
	must(t, err)
	base, _ := s.keyName("limit", "key")
	ask := limiter.Request{N: 1}
	late := call{script: p.script, keys: p.appendKeys(nil, base, s.name, &ask), args: []any{
		string(appendNumbers(nil, -1, minSpare, float64(time.Now().Add(-time.Minute).UnixMicro()))), p.encodeAsk(&ask, 0, false),
	}}
	must(t, run(t.Context(), s.client, &late))
	if _, now, err := readReply(late.cmd.Val(), 1); !errors.Is(err, errLate) || time.Since(time.UnixMicro(now)).Abs() > patience {
		t.Errorf("%v at %d", err, now)
	}
	if r := take(t, s, q, "key", 1); r.Remaining != 4 {
		t.Errorf("the late script took a permit: %+v", r)
	}
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		s.clocks.only.ahead.Store(wrong.Microseconds())
		results := make([]limiter.Result, 1)
		must(t, s.DoAll(t.Context(), []limiter.Op{{Quota: q, Name: "limit", Key: "other", Request: ask}}, results))
		if got := time.Duration(s.clocks.only.ahead.Load()) * time.Microsecond; got.Abs() > patience || !results[0].Allowed {
			t.Errorf("%v ahead: then taken to be %v; %+v", wrong, got, results[0])
		}
	}
}

// A Charge with a mark has an effect once, whatever is asked in between. A Charge dated back counts
// from its date.
func TestChargeOnce(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, q := range []*rules.Quota{
		quota(rules.Quota{Rate: rate(10, time.Hour)}),
		quota(rules.Quota{Rate: rate(10, time.Hour), Penalty: time.Minute}),
		quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(10, time.Hour)}),
		quota(rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(10, time.Hour)}),
		quota(rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rate(10, time.Hour)}),
	} {
		s, other := storeOf(t, client, nil), storeOf(t, client, nil)
		key := fmt.Sprint(q.Algorithm, q.Penalty)
		charge := func(s *Store, mark, n, left int64) {
			t.Helper()
			op := limiter.Op{Quota: q, Key: key, Request: limiter.Request{Kind: limiter.Charge, Mark: mark, N: n, Within: 30 * time.Millisecond}}
			if r := ask(t, s, op); r.Remaining != left {
				t.Errorf("%s: mark %d, %d permits: %+v, want %d remaining", key, mark, n, r, left)
			}
		}
		take(t, s, q, key, 1)
		charge(s, 5, 2, 7)
		charge(s, 5, 2, 7)
		charge(s, 5, 3, 6)
		charge(s, 5, 1, 6)
		charge(other, 4, 1, 5)
		charge(s, 4, 3, 5)
		charge(s, 6, 1, 4)
		charge(s, 5, 9, 4)
	}
	q := quota(rules.Quota{Rate: rate(10, 10*time.Second)})
	s := storeOf(t, client, nil)
	if r := ask(t, s, limiter.Op{Quota: q, Key: "back", Request: limiter.Request{Kind: limiter.Charge, Mark: 1, N: 8, Within: 5 * time.Second}}); r.Taken != 8 {
		t.Errorf("%+v", r)
	}
	if r := take(t, s, q, "back", 7); !r.Allowed {
		t.Errorf("five permits have come back: %+v", r)
	}
}
