//go:build !race

// These tests use one goroutine and so have no races. They run only without the race detector.

package redislimiter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// lua/plain.lua returns the same results, and writes the same values to Redis, as the functions of
// the other files, byte for byte.
func TestPlainTakesAreAsOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	short, whole := bucketScript, newScript(timeLua, headLua, bucketLua, runLua)
	rate := func(n int64, per time.Duration) rules.Rate { return rules.Rate{N: n, Per: per} }
	quotas := []*rules.Quota{
		{Rate: rate(10, time.Second), Burst: 10},
		{Rate: rate(10, time.Second), Burst: 25},
		{Rate: rate(7, 3*time.Second), Burst: 3},
		{Rate: rate(1, time.Hour), Burst: 1},
		{Rate: rate(999_983, time.Minute), Burst: 1_000_003},
		{Algorithm: rules.GCRA, Rate: rate(10, time.Second), Burst: 10},
		{Algorithm: rules.LeakyBucket, Rate: rate(10, time.Second), Burst: 10},
		{Algorithm: rules.LeakyBucket, Rate: rate(10, time.Second), Burst: 10, Shape: true},
		{Rate: rate(10, time.Second), Burst: 10, Missing: 4},
		{Rate: rate(10, time.Second), Burst: 10, Penalty: 2 * time.Second},
	}
	plans := make([]*plan, len(quotas))
	for i, q := range quotas {
		p, err := newPlan(q)
		must(t, err)
		plans[i] = p
	}
	states := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 4))
		now := int64(1_700_000_000_000_000)
		favourites := []*plan{plans[rng.IntN(len(plans))], plans[seed%2], plans[0]} // mostly two or three quotas ask for a key
		for key := range rng.IntN(4) {                                              // as the previous version left it, with a lock or without
			earn, cost, err := units(quotas[0].Rate, quotas[0].Burst)
			must(t, err)
			state := appendNumbers([]byte("b"), float64(rng.Int64N(2)*(now+300_000_000)), float64(now), float64(earn), float64(cost), 10, float64(rng.Int64N(10*cost)))
			for side := range 2 {
				must(t, client.Set(t.Context(), fmt.Sprintf("{%d}%d:%d", seed, side, key), state, time.Hour).Err())
			}
		}
		for step := range 60 {
			switch rng.IntN(8) {
			case 0:
				now -= rng.Int64N(2_000_000)
			case 1:
				now += rng.Int64N(100_000_000)
			default:
				now += rng.Int64N(60_000)
			}
			calls := [2]call{{script: short}, {script: whole}}
			for side := range calls {
				calls[side].args = []any{string(appendNumbers(nil, float64(now), float64(minSpare), 0))}
			}
			type asking struct {
				p    *plan
				ask  limiter.Request
				base int
			}
			var asks []asking
			for range 1 + rng.IntN(3) {
				p := favourites[rng.IntN(len(favourites))]
				if rng.IntN(4) == 0 {
					p = plans[rng.IntN(len(plans))]
				}
				ask := limiter.Request{N: 1}
				switch rng.IntN(7) {
				case 2:
					ask.Kind, ask.N, ask.Within = limiter.Reserve, 4, 3*time.Second
				case 0:
					ask.N, ask.Keep = rng.Int64N(p.limit+3)-1, rng.Int64N(3)
				case 1:
					ask.Kind, ask.Within = limiter.OpKind(rng.IntN(int(limiter.Forget)+1)), time.Duration(rng.IntN(3e9))
				}
				asks = append(asks, asking{p, ask, rng.IntN(3)})
			}
			for i, together := len(asks)-1, rng.IntN(2) == 0; together && i >= 0; i-- {
				asks[i].ask.Together = true
				together = isTogether(&asks[i].ask) && rng.IntN(4) > 0
			}
			for _, a := range asks {
				asked := a.p.encodeAsk(&a.ask, now, true)
				for side := range calls {
					base := fmt.Sprintf("{%d}%d:%d", seed, side, a.base)
					calls[side].keys = a.p.appendKeys(calls[side].keys, base, "", &a.ask)
					calls[side].args = append(calls[side].args, asked)
				}
			}
			must(t, run(t.Context(), client, &calls[0], &calls[1]))
			if got, want := calls[0].cmd.Val(), calls[1].cmd.Val(); got != want {
				t.Fatalf("seed %d, step %d: %x, want %x", seed, step, got, want)
			}
			got, gotLives := kept(t, client, seed, 0)
			want, wantLives := kept(t, client, seed, 1)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: it keeps\n%q\nwant\n%q", seed, step, got, want)
			}
			for i, life := range gotLives {
				if d := (life - wantLives[i]).Abs(); d > 10*time.Second {
					t.Fatalf("seed %d, step %d: %q is kept for %v, want %v", seed, step, got[i], life, wantLives[i])
				}
			}
			states += len(got)
		}
	}
	if states == 0 {
		t.Error("nothing was ever kept")
	}
}

// kept returns one side's keys and values in Redis, and their times to live.
func kept(t *testing.T, client *redis.Client, seed uint64, side int) (all []string, lives []time.Duration) {
	t.Helper()
	prefix := fmt.Sprintf("{%d}%d:", seed, side)
	names, err := client.Keys(t.Context(), prefix+"*").Result()
	must(t, err)
	slices.Sort(names)
	for _, name := range names {
		value, err := client.Get(t.Context(), name).Result()
		must(t, err)
		life, err := client.PTTL(t.Context(), name).Result()
		must(t, err)
		all, lives = append(all, fmt.Sprintf("%s %x", strings.TrimPrefix(name, prefix), value)), append(lives, life)
	}
	return all, lives
}
