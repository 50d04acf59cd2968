package redislimiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// throttled is one call of the real module: its reply, the instants between which it ran, and the
// instant at which its bucket is full, before and after the call (-1 means no key).
type throttled struct {
	reply         [5]int64
	from, to      time.Duration
	before, after time.Duration
}

func throttle(t *testing.T, client *redis.Client, key string, q *rules.Quota, n int64) throttled {
	t.Helper()
	pipe := client.TxPipeline()
	ctx := context.Background()
	from, before := pipe.Time(ctx), pipe.Get(ctx, key)
	reply := pipe.Do(ctx, "CL.THROTTLE", key, q.Burst-1, q.Rate.N, int64(q.Rate.Per/time.Second), n)
	after, to := pipe.Get(ctx, key), pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	instant := func(cmd *redis.StringCmd) time.Duration {
		ns, err := strconv.ParseInt(cmd.Val(), 10, 64)
		if err != nil {
			return -1
		}
		return time.Duration(ns)
	}
	numbers, err := reply.Int64Slice()
	must(t, err)
	return throttled{
		reply: [5]int64(numbers),
		from:  time.Duration(from.Val().UnixNano()), to: time.Duration(to.Val().UnixNano()) + time.Microsecond - 1,
		before: instant(before), after: instant(after),
	}
}

// wholeSeconds returns our reply as the module writes it. Up to version 0.2.2, the tested one, the
// module drops fractions of a second.
func wholeSeconds(r limiter.Result) [5]int64 {
	reply := CellReply(r.Decision)
	if reply[3] >= 0 {
		reply[3] = int64(r.RetryAfter / time.Second)
	}
	reply[4] = int64(r.ResetAfter / time.Second)
	return reply
}

// Our GCRA, in memory and on Redis, returns the same five numbers as the real module at the same
// instants. The module reads the clock itself, at an instant that is known only to lie between two
// others. Its state shows the instant where it matters. Elsewhere either of the two will do.
func TestAnswersAsRedisCell(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	client := storeClient(t, real.RedisCell(t).Addr(), nil)
	for _, q := range []*rules.Quota{
		quota(rules.Quota{Algorithm: rules.GCRA, Rate: rate(100, time.Second), Burst: 5}),
		quota(rules.Quota{Algorithm: rules.GCRA, Rate: rate(2000, 4*time.Second), Burst: 30}),
		quota(rules.Quota{Algorithm: rules.GCRA, Rate: rate(3, time.Minute), Burst: 4}),
		quota(rules.Quota{Algorithm: rules.GCRA, Rate: rate(1, time.Second), Burst: 1}),
	} {
		t.Run(q.Rate.String(), func(t *testing.T) {
			clock := handAt(0)
			memory, err := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: 10, Clock: clock.now})
			must(t, err)
			backends := map[string]limiter.Backend{"memory": memory, "redis": storeOf(t, client, clock.of)}
			key := "cell " + q.Rate.String()
			random := rand.New(rand.NewPCG(1, uint64(q.Rate.N)))
			interval := q.Rate.Per / time.Duration(q.Rate.N)
			for i := range 120 {
				n := random.Int64N(3)
				if i%10 == 0 {
					n = random.Int64N(q.Burst + 3)
				}
				got := throttle(t, client, key, q, n)
				for name, b := range backends {
					op := limiter.Op{Quota: q, Name: "cell", Key: key, Request: limiter.Request{N: n}}
					if got.before < 0 { // it is full, or the module forgot it up to 1 ms early
						ask(t, b, limiter.Op{Quota: q, Name: "cell", Key: key, Request: limiter.Request{Kind: limiter.Forget}})
					}
					if wants := answers(t, b, clock, op, got, interval); !among(got.reply, wants) && got.to-got.from < interval/2 {
						t.Fatalf("%d: %s: take %d: the module answers %d, we %d", i, name, n, got.reply, wants)
					}
				}
				time.Sleep(time.Duration(random.Int64N(int64(min(2*interval, 8*time.Millisecond)))))
			}
		})
	}
}

// among reports whether each number of the reply is in one of the answers. Between two close
// instants each number changes at most once, and not all at the same instant.
func among(reply [5]int64, answers [][5]int64) bool {
	for k, n := range reply {
		if !slices.ContainsFunc(answers, func(a [5]int64) bool { return a[k] == n }) {
			return false
		}
	}
	return true
}

// answers returns b's replies at each instant at which the module may have answered. b has taken
// the same permits as the module, at the same instants.
func answers(t *testing.T, b limiter.Backend, clock *hand, op limiter.Op, got throttled, interval time.Duration) (wants [][5]int64) {
	t.Helper()
	instants := []time.Duration{got.from, got.to}
	cost := interval * time.Duration(op.N)
	if got.reply[0] == 0 {
		if begin := got.after - cost; begin > got.before {
			instants = []time.Duration{begin} // it was full, so that is the instant
		} else {
			instants = []time.Duration{got.from, min(got.to, got.before)} // it was not
		}
	}
	for _, now := range instants {
		for _, at := range []time.Duration{now.Truncate(time.Microsecond), now.Truncate(time.Microsecond) + time.Microsecond, now} {
			clock.ns.Store(int64(at))
			peek := op
			peek.Kind = limiter.Peek
			r := ask(t, b, peek)
			if r.Allowed { // a Peek reports the state before
				r.Remaining -= op.N
				r.ResetAfter += cost
			}
			wants = append(wants, wholeSeconds(r))
		}
	}
	if got.reply[0] == 0 {
		clock.ns.Store(int64(instants[0]))
		r := ask(t, b, limiter.Op{Quota: op.Quota, Name: op.Name, Key: op.Key, Request: limiter.Request{Kind: limiter.Charge, N: op.N}})
		if off := clock.now() + r.ResetAfter - got.after; op.N > 0 && off.Abs() > 2*time.Microsecond {
			t.Errorf("take %d: full %v later than by the module", op.N, off)
		}
	}
	return wants
}

func TestCell(t *testing.T) {
	client := storeClient(t, real.RedisCell(t).Addr(), nil)
	cell, err := NewCell(client, CellConfig{Namespace: "shop", Timeout: patience})
	must(t, err)
	q := quota(rules.Quota{Rate: rate(1, time.Hour), Burst: 5})
	for i, test := range []struct {
		ask  limiter.Request
		want limiter.Result
	}{
		{limiter.Request{N: 2}, limiter.Result{Decision: rules.Decision{Allowed: true, Remaining: 3}, Taken: 2}},
		{limiter.Request{Kind: limiter.Peek, N: 3}, limiter.Result{Decision: rules.Decision{Allowed: true, Remaining: 3}}},
		{limiter.Request{Kind: limiter.Peek, N: 2, Keep: 2}, limiter.Result{Decision: rules.Decision{Remaining: 3, RetryAfter: time.Hour}}},
		{limiter.Request{Kind: limiter.Peek, N: 6}, limiter.Result{Decision: rules.Decision{Remaining: 3}}},
		{limiter.Request{}, limiter.Result{Decision: rules.Decision{Allowed: true, Remaining: 3}}},
		{limiter.Request{N: -1}, limiter.Result{Decision: rules.Decision{Remaining: 3}}},
		{limiter.Request{N: 6}, limiter.Result{Decision: rules.Decision{Remaining: 3}}},
		{limiter.Request{N: 1 << 62}, limiter.Result{Decision: rules.Decision{Remaining: 3}}},
		{limiter.Request{N: 3}, limiter.Result{Decision: rules.Decision{Allowed: true}, Taken: 3}},
		{limiter.Request{N: 1}, limiter.Result{Decision: rules.Decision{RetryAfter: time.Hour}}},
		{limiter.Request{Kind: limiter.Peek, N: 1}, limiter.Result{Decision: rules.Decision{RetryAfter: time.Hour}}},
	} {
		r, err := cell.Do(context.Background(), limiter.Op{Quota: q, Name: "limit", Key: "{key", Request: test.ask})
		must(t, err)
		test.want.Limit, test.want.Reason = 5, rules.ReasonLimited
		if test.want.Allowed {
			test.want.Reason = rules.ReasonWithin
		}
		if taken := time.Duration(5-r.Remaining) * time.Hour; r.ResetAfter <= taken-patience || r.ResetAfter > taken+time.Second {
			t.Errorf("%d: as new in %v", i, r.ResetAfter)
		}
		if off := test.want.RetryAfter - r.RetryAfter; off < -time.Second || off > patience || (r.RetryAfter == 0) != (test.want.RetryAfter == 0) {
			t.Errorf("%d: retry after %v, want %v", i, r.RetryAfter, test.want.RetryAfter)
		}
		r.ResetAfter, r.RetryAfter, test.want.RetryAfter = 0, 0, 0
		if r != test.want {
			t.Errorf("%d: %+v, want %+v", i, r, test.want)
		}
	}
	r, err := cell.Do(context.Background(), limiter.Op{Quota: &rules.Quota{Burst: rules.Unlimited}, Name: "limit", Key: "key", Request: limiter.Request{N: 100}})
	if err != nil || !r.Allowed || r.Limit != -1 {
		t.Errorf("unlimited: %+v, %v", r, err)
	}
}

func TestCellRefuses(t *testing.T) {
	cell, err := NewCell(storeClient(t, "127.0.0.1:1", nil), CellConfig{Namespace: "shop"})
	must(t, err)
	good := quota(rules.Quota{Rate: rate(1, time.Second)})
	for i, op := range []limiter.Op{
		{Quota: good, Request: limiter.Request{Kind: limiter.Reserve}},
		{Quota: good, Request: limiter.Request{Kind: limiter.Charge}},
		{Quota: good, Request: limiter.Request{Kind: limiter.Forget}},
		{Quota: good, Request: limiter.Request{N: 1, Keep: 1}},
		{Quota: quota(rules.Quota{Rate: rate(1, 1500*time.Millisecond)})},
		{Quota: quota(rules.Quota{Rate: rate(1_000_001, time.Second)})},
		{Quota: quota(rules.Quota{Rate: rate(1, time.Second), Penalty: 1})},
		{Quota: quota(rules.Quota{Rate: rate(1, time.Second), Missing: 1})},
		{Quota: quota(rules.Quota{Rate: rate(1, time.Second), WarmUp: 1})},
		{Quota: quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(1, time.Second)})},
	} {
		op.Name, op.Key = "limit", "key"
		if _, err := cell.Do(context.Background(), op); !errors.Is(err, limiter.ErrUnsupported) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := cell.Do(context.Background(), limiter.Op{Quota: good, Name: "limit"}); !errors.Is(err, limiter.ErrNoKey) {
		t.Error(err)
	}
	if _, err := cell.Do(context.Background(), limiter.Op{Name: "limit", Key: "key"}); !errors.Is(err, errNoQuota) {
		t.Error(err)
	}
	if _, err := NewCell(storeClient(t, "127.0.0.1:1", nil), CellConfig{}); err == nil {
		t.Error("no namespace is taken")
	}
}

func TestNoCell(t *testing.T) {
	cell, err := NewCell(storeClient(t, testenv.Redis(t).Addr(), nil), CellConfig{Namespace: "shop", Timeout: patience})
	must(t, err)
	_, err = cell.Do(context.Background(), limiter.Op{Quota: quota(rules.Quota{Rate: rate(1, time.Second)}), Name: "limit", Key: "key", Request: limiter.Request{N: 1}})
	if !errors.Is(err, ErrNoCell) {
		t.Errorf("without the module: %v", err)
	}
}
