package redislimiter

import (
	"context"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Every bucket of up to 2^32 permits that a quota may describe can be counted: exactly, or with a
// cost that is too high by less than two millionths, but never too low.
func TestUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rules.Quota{Rate: rules.Rate{
			N:   rapid.Int64Range(1, math.MaxInt64).Draw(t, "n"),
			Per: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "per")),
		}, Burst: rapid.Int64Range(1, 1<<32).Draw(t, "burst")}
		if q.Validate() != nil {
			t.Skip()
		}
		earn, cost, err := units(q.Rate, q.Burst)
		if err != nil {
			t.Fatal(err)
		}
		if earn < 1 || cost < 1 || cost > maxFill/q.Burst || earn > maxFill {
			t.Fatalf("%d earned, %d cost", earn, cost)
		}
		// The quotient of cost / earn µs and Per / N ns must be at least 1.
		quotient := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(cost), new(big.Int).Mul(big.NewInt(1000), big.NewInt(q.Rate.N))),
			new(big.Int).Mul(big.NewInt(earn), big.NewInt(int64(q.Rate.Per))))
		if f, _ := quotient.Float64(); quotient.Cmp(big.NewRat(1, 1)) < 0 || f > 1+2e-6 {
			t.Fatalf("a permit costs %v of what it should", f)
		}
	})
	for _, test := range []struct {
		rate       rules.Rate
		burst      int64
		earn, cost int64
	}{
		{rate(10, time.Second), 10, 1, 100_000},
		{rate(3, time.Second), 3, 3, 1_000_000},
		{rate(rules.MaxRate, time.Second), rules.MaxRate, 10, 1},
		{rate(1, 24*time.Hour), 1, 1, 86_400_000_000},
		{rate(1_000_000, 24*time.Hour), 1_000_000, 1, 86_400},
		{rate(2, 1500), 2, 4, 3}, // per 1.5 µs
		{rate(1, 999), 1, 1000, 999},
	} {
		if earn, cost, err := units(test.rate, test.burst); err != nil || earn != test.earn || cost != test.cost {
			t.Errorf("%s: %d earned, %d cost, %v", test.rate, earn, cost, err)
		}
	}
	if _, _, err := units(rate(rules.MaxRate, time.Second), 1<<53); err == nil {
		t.Error("a bucket of 2^53 permits is counted")
	}
}

// Over a long time the rate is met, for high, low and odd rates.
func TestRatesAreExact(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, r := range []rules.Rate{
		rate(rules.MaxRate, time.Second), rate(1, 24*time.Hour), rate(7, 24*time.Hour), rate(123_457, 24*time.Hour),
		rate(9_999_991, time.Second), rate(3, time.Second), rate(1, 2*time.Second), rate(1, 365*24*time.Hour),
	} {
		for _, q := range []*rules.Quota{
			quota(rules.Quota{Rate: r, Burst: 5}),
			quota(rules.Quota{Algorithm: rules.LeakyBucket, Rate: r, Burst: 5}),
			quota(rules.Quota{Rate: r, Burst: 5 * r.N}),
		} {
			clock := handAt(1_700_000_000 * time.Second)
			s := storeOf(t, client, clock.of)
			key := r.String() + string(q.Algorithm)
			forget := limiter.Op{Quota: q, Key: key, Request: limiter.Request{Kind: limiter.Forget}}
			ask(t, s, forget)
			taken, passed := take(t, s, q, key, q.Burst).Taken-q.Burst, time.Duration(0)
			for i := range 60 {
				step := max(q.Rate.Per/time.Duration(q.Rate.N)*time.Duration(i%5)/2, time.Microsecond).Truncate(time.Microsecond)
				clock.pass(step)
				passed += step
				taken += ask(t, s, limiter.Op{Quota: q, Key: key, Request: limiter.Request{Kind: limiter.AtMost, N: q.Burst}}).Taken
			}
			exact := float64(r.N) * float64(passed) / float64(r.Per)
			if math.Abs(float64(taken)-exact) > 1+exact*1e-6 && q.Burst >= 2*r.N || float64(taken) > exact+1 {
				t.Errorf("%s, burst %d: %d were taken in %v, want %.3f", r, q.Burst, taken, passed, exact)
			}
			ask(t, s, forget)
		}
	}
}

func TestWhatCannotBeAsked(t *testing.T) {
	s := storeOf(t, storeClient(t, "127.0.0.1:1", nil), nil) // where no Redis is asked
	good := quota(rules.Quota{Rate: rate(10, time.Second)})
	for _, test := range []struct {
		name string
		op   limiter.Op
		is   error
		says string
	}{
		{"no name", limiter.Op{Quota: good, Key: "key"}, limiter.ErrNoKey, ""},
		{"no key", limiter.Op{Quota: good, Name: "limit"}, limiter.ErrNoKey, ""},
		{"no quota", limiter.Op{Name: "limit", Key: "key"}, nil, "no Quota"},
		{"no such kind", limiter.Op{Quota: good, Name: "limit", Key: "key", Request: limiter.Request{Kind: 77}}, limiter.ErrUnsupported, "77"},
		{"a quota that is none", limiter.Op{Quota: &rules.Quota{}, Name: "limit", Key: "key"}, nil, "limit.rate"},
		{"an algorithm of one's own", limiter.Op{Quota: &rules.Quota{Algorithm: "x_mine", Rate: rate(1, time.Second), Burst: 1}, Name: "limit", Key: "key"}, limiter.ErrUnsupported, "x_mine"},
		{"too many permits", limiter.Op{Quota: &rules.Quota{Rate: rate(rules.MaxRate, time.Second), Burst: 1 << 54}, Name: "limit", Key: "key"}, nil, "2^52"},
	} {
		results := make([]limiter.Result, 2)
		err := s.DoAll(context.Background(), []limiter.Op{{Quota: good, Name: "limit", Key: "key"}, test.op}, results)
		if limiter.ErrorOf(err, 0) == nil || errors.Is(limiter.ErrorOf(err, 0), limiter.ErrUnsupported) {
			t.Errorf("%s: the other op: %v", test.name, err)
		}
		var alone *limiter.OpError
		err = limiter.ErrorOf(err, 1)
		if !errors.As(err, &alone) && !errors.Is(err, limiter.ErrNoKey) && !errors.Is(err, limiter.ErrUnsupported) {
			t.Errorf("%s: %v is not of one op", test.name, err)
		}
		if err == nil || test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || !strings.HasPrefix(err.Error(), "redislimiter: ") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if err := s.DoAll(context.Background(), make([]limiter.Op, 2), make([]limiter.Result, 1)); err == nil {
		t.Error("fewer results than ops are taken")
	}
}

func TestUnlimitedAsksNobody(t *testing.T) {
	s := storeOf(t, storeClient(t, "127.0.0.1:1", nil), nil)
	q := &rules.Quota{Burst: rules.Unlimited}
	for kind := limiter.Take; kind <= limiter.Forget; kind++ {
		r := ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: kind, N: math.MaxInt64, Keep: math.MaxInt64}})
		if !r.Allowed || r.Reason != rules.ReasonWithin || r.Limit != -1 || r.Remaining != -1 {
			t.Errorf("kind %d: %+v", kind, r)
		}
		if r := ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: kind, N: -1}}); r.Allowed != (kind == limiter.Forget) {
			t.Errorf("kind %d of -1: %+v", kind, r)
		}
	}
}

// No argument breaks a script, however large.
func TestExtremes(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	numbers := []int64{math.MinInt64, -1, 0, 1, 9, 10, 11, 1 << 40, 1 << 53, math.MaxInt64}
	for _, now := range []time.Duration{math.MinInt64, 0, 1, 1_700_000_000 * time.Second, math.MaxInt64} {
		s := storeOf(t, client, handAt(now).of)
		for _, every := range everyQuota {
			for _, long := range []time.Duration{0, 1, math.MaxInt64} {
				q := *every.quota
				q.Penalty = min(long, rules.MaxPenalty)
				q.CountDenied = q.Algorithm.Windowed()
				var ops []limiter.Op
				for kind := limiter.Take; kind <= limiter.Forget; kind++ {
					for _, n := range numbers {
						for _, keep := range []int64{math.MinInt64, 0, 1, math.MaxInt64} {
							ops = append(ops, limiter.Op{Quota: &q, Name: every.name, Key: "key", Request: limiter.Request{Kind: kind, N: n, Keep: keep, Within: long, Mark: n}})
						}
					}
				}
				if err := s.DoAll(context.Background(), ops, make([]limiter.Result, len(ops))); err != nil {
					t.Fatalf("%s at %v within %v: %v", every.name, now, long, err)
				}
			}
		}
	}
}

func TestConfig(t *testing.T) {
	client := storeClient(t, "127.0.0.1:1", nil)
	for says, edit := range map[string]func(*Config){
		"Config.Namespace": func(c *Config) { c.Namespace = "a b" },
		"Config.Timeout":   func(c *Config) { c.Timeout = -1 },
		"Config.Jitter":    func(c *Config) { c.Jitter = -1 },
	} {
		cfg := Config{Namespace: "shop"}
		edit(&cfg)
		if _, err := New(client, cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want it to tell of %s", err, says)
		}
	}
	for name, bad := range map[string]redis.UniversalClient{
		"none":                 nil,
		"deadlines":            redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}),
		"deadlines in cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}),
		"replicas":             redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true, ReadOnly: true}),
	} {
		if bad != nil {
			t.Cleanup(func() { bad.Close() })
		}
		if _, err := New(bad, Config{Namespace: "shop"}); err == nil {
			t.Errorf("%s: the client is taken", name)
		}
		if _, err := NewCell(bad, CellConfig{Namespace: "shop"}); err == nil {
			t.Errorf("%s: the client is taken", name)
		}
	}
}

// The number of plans is bounded, even if each quota is used only once.
func TestPlansAreBounded(t *testing.T) {
	var p plans
	for range 3 * maxPlans {
		if _, err := p.planFor(quota(rules.Quota{Rate: rate(10, time.Second)})); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.byQuota) > maxPlans {
		t.Errorf("%d plans are kept", len(p.byQuota))
	}
}
