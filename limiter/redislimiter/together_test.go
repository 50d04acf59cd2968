package redislimiter

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// limits are a shared limit and a limit for each user, asked in one call.
type limits struct{ shared, user *limiter.Limiter }

func limitsOf(t *testing.T, s *Store, shared, user rules.Quota) limits {
	t.Helper()
	var l limits
	var err error
	l.shared, err = limiter.New(s, "shared", shared)
	must(t, err)
	l.user, err = limiter.New(s, "user", user)
	must(t, err)
	return l
}

func (l limits) allow(ctx context.Context, user string) (bool, error) {
	d, err := limiter.AllowAll(ctx, limiter.Claim{Limiter: l.shared, Key: "all", N: 1}, limiter.Claim{Limiter: l.user, Key: user, N: 1})
	return d.Allowed, err
}

// attack makes one user ask over many connections until the context ends. It returns once the
// attack has begun. wait returns the number of refused requests.
func (l limits) attack(ctx context.Context, t *testing.T, connections int) (wait func() (refused int64)) {
	var all sync.WaitGroup
	var begun sync.WaitGroup
	counts := make([]int64, connections)
	for i := range counts {
		begun.Add(1)
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				ok, err := l.allow(context.Background(), "attacker")
				if err != nil {
					t.Error(err)
				} else if !ok {
					counts[i]++
				}
				if n == 0 || err != nil {
					begun.Done()
				}
				if err != nil {
					return
				}
			}
		})
	}
	begun.Wait()
	return func() (refused int64) {
		all.Wait()
		for _, n := range counts {
			refused += n
		}
		return refused
	}
}

// A user who exceeds their own limit takes no place of a shared limit, not even in flight. Users
// within their own limits get all of the shared one. A refused request costs the shared limit
// nothing.
func TestTheRefusedStarveNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for name, start := range map[string]func(*testing.T) redis.UniversalClient{
		"single": func(t *testing.T) redis.UniversalClient {
			return storeClient(t, testenv.Redis(t).Addr(), func(o *redis.Options) { o.PoolSize = 100 })
		},
		"cluster, one slot": func(t *testing.T) redis.UniversalClient { return clientAt(t, testenv.RedisCluster(t).URL()) },
	} {
		t.Run(name, func(t *testing.T) {
			client := start(t)
			for _, shared := range []rules.Quota{
				{Rate: rate(100, time.Hour)}, {Algorithm: rules.SlidingLog, Rate: rate(100, time.Hour)},
			} {
				s := storeOf(t, client, func(c *Config) {
					c.Namespace = hashOf(name, string(shared.Algorithm))
					c.Tag = func(string, string) string { return "one" }
				})
				l := limitsOf(t, s, shared, rules.Quota{Rate: rate(50, time.Hour)})
				for range 50 {
					ok, err := l.allow(t.Context(), "attacker")
					must(t, err)
					if !ok {
						t.Fatal("refused within both limits")
					}
				}
				ctx, stop := context.WithCancel(t.Context())
				wait := l.attack(ctx, t, 90)
				served := 0
				for range 50 {
					ok, err := l.allow(t.Context(), "good")
					must(t, err)
					if ok {
						served++
					}
				}
				stop()
				if refused := wait(); served != 50 || refused < 90 {
					t.Errorf("%s: %d of the 50 that are left were served beside %d that were refused", shared.Algorithm, served, refused)
				}
			}
		})
	}
}

// If the keys are in different slots of a cluster, a refused request takes permits and returns
// them. It costs no more than was earned in between.
func TestTogetherInOtherSlots(t *testing.T) {
	t.Parallel()
	s := storeOf(t, clientAt(t, testenv.RedisCluster(t).URL()), nil)
	l := limitsOf(t, s, rules.Quota{Rate: rate(100, time.Hour)}, rules.Quota{Rate: rate(5, time.Hour)})
	for range 5 {
		ok, err := l.allow(t.Context(), "attacker")
		must(t, err)
		if !ok {
			t.Fatal("refused within both limits")
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	wait := l.attack(ctx, t, 20)
	stop()
	refused := wait()
	if d, err := l.shared.Peek(t.Context(), "all", 1); err != nil || d.Remaining < 94 {
		t.Errorf("%+v, %v: after %d refusals of what was over another limit, want 94 left or more", d, err, refused)
	}
}

// Takes that were in flight together are returned in full in any order, except for the permits
// earned in between.
func TestReturnsDoNotLeak(t *testing.T) {
	clock := handAt(1_700_000_000 * time.Second)
	s := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), clock.of)
	q := quota(rules.Quota{Rate: rate(100, time.Hour)})
	start := clock.now()
	take(t, s, q, "key", 50)
	rng := rand.New(rand.NewPCG(1, 1))
	var held []limiter.Result
	var flying time.Duration // sum over the returned takes
	for returned := 0; returned < 4000; {
		clock.pass(time.Duration(rng.IntN(200)) * time.Microsecond)
		if len(held) < 1+rng.IntN(30) {
			if r := take(t, s, q, "key", 1); r.Allowed {
				held = append(held, r)
			}
			continue
		}
		i := rng.IntN(len(held))
		flying += clock.now() - held[i].Receipt.At
		ask(t, s, limiter.Op{Quota: q, Key: "key", Request: held[i].Return()})
		held = append(held[:i], held[i+1:]...)
		returned++
	}
	for _, r := range held {
		ask(t, s, limiter.Op{Quota: q, Key: "key", Request: r.Return()})
	}
	r := ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Peek}})
	earned := float64(clock.now()-start) / float64(time.Hour) * 100
	missing := r.ResetAfter.Hours() * 100
	leak := missing - (50 - earned)
	if most := flying.Hours() * 100; leak > most+0.001 || leak < -0.001 {
		t.Errorf("%.3f permits did not come back, want at most the %.3f that were earned while each was in flight", leak, most)
	}
}

// A denial has its effects, a lock or a counted request, even if limits are asked together, but
// only on the limit that denies.
func TestDenialsTogetherHaveEffects(t *testing.T) {
	clock := handAt(1_700_000_000 * time.Second)
	s := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), clock.of)
	ops := []limiter.Op{
		{Quota: quota(rules.Quota{Rate: rate(10, time.Hour)}), Name: "shared", Key: "k"},
		{Quota: quota(rules.Quota{Rate: rate(2, time.Second), Penalty: time.Minute}), Name: "locks", Key: "k"},
		{Quota: quota(rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(2, time.Second), CountDenied: true}), Name: "counts", Key: "k"},
	}
	for i := range ops {
		ops[i].Request = limiter.Request{N: 1, Together: true}
	}
	askAll := func() []limiter.Result {
		results := make([]limiter.Result, len(ops))
		must(t, s.DoAll(t.Context(), ops, results))
		return results
	}
	for range 2 {
		if r := askAll(); !r[0].Allowed || !r[1].Allowed || !r[2].Allowed || r[0].Taken != 1 {
			t.Fatalf("%+v", r)
		}
	}
	if r := askAll(); !r[0].Allowed || r[0].Taken != 0 || r[0].Remaining != 8 || r[1].RetryAfter != time.Minute || r[2].Allowed {
		t.Errorf("%+v: want the first untouched, and the second locked", r)
	}
	clock.pass(2 * time.Second)
	if r := askAll(); r[1].Reason != rules.ReasonLocked || !r[2].Allowed || r[2].Taken != 0 || r[2].Remaining != 2 {
		t.Errorf("%+v: want the second still locked, and the third untouched", r)
	}
	clock.pass(time.Minute)
	askAll()
	clock.pass(500 * time.Millisecond)
	askAll()
	if r := askAll(); r[0].Remaining != 6 || r[2].RetryAfter != time.Second {
		t.Errorf("%+v: want a denial that has counted", r)
	}
}

// Requests of one key that together exceed its limit take nothing, even if each alone would fit.
// Neither do the other requests of the same call. If they fit, each takes its own permits.
func TestTogetherOfOneKey(t *testing.T) {
	clock := handAt(1_700_000_000 * time.Second)
	s := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), clock.of)
	for _, every := range everyQuota {
		if every.quota.WarmUp > 0 {
			continue // a cold permit costs more than its return restores
		}
		half := every.quota.Burst/2 + 1
		one := limiter.Op{Quota: every.quota, Name: every.name, Key: "k", Request: limiter.Request{N: half, Together: true}}
		other := limiter.Op{Quota: every.quota, Name: every.name, Key: "other", Request: limiter.Request{N: 1, Together: true}}
		ops, results := []limiter.Op{one, other, one}, make([]limiter.Result, 3)
		must(t, s.DoAll(t.Context(), ops, results))
		if results[0].Taken+results[1].Taken+results[2].Taken != 0 || !results[0].Allowed || results[2].Allowed {
			t.Errorf("%s: %+v: want the third refused, and nothing taken", every.name, results)
		}
		ops[2].N = every.quota.Burst - half
		must(t, s.DoAll(t.Context(), ops, results))
		if results[0].Taken != half || results[1].Taken != 1 || results[2].Taken != every.quota.Burst-half {
			t.Errorf("%s: %+v: want all taken", every.name, results)
		}
	}
}
