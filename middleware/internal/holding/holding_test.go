package holding

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// holder is one instance's share of a limit in each kind of store, with the permits that it has
// granted.
type holder struct {
	*Holding
	keys   *limiter.Keys
	single *limiter.Bucket
}

func newHolder(t *testing.T, q *rules.Quota, n int) *holder {
	t.Helper()
	h := &holder{Holding: New(q, n)}
	var err error
	if h.keys, err = limiter.NewKeys(h.Part(), 100, nil); err != nil {
		t.Fatal(err)
	}
	if h.single, err = limiter.NewBucket(h.Part(), nil); err != nil {
		t.Fatal(err)
	}
	return h
}

// owe makes both stores owe permits.
func (h *holder) owe(by limiter.Owing, key string, now time.Duration) {
	h.keys.Owe(by, now)
	h.single.Owe(by.All+by.Of[limiter.KeyID([]byte(key))], now)
}

func (h *holder) resize(t *testing.T, q *rules.Quota, n int, now time.Duration) {
	t.Helper()
	owed := h.Resize(q, n, now)
	part := *h.Part()
	if owed > 0 {
		h.owe(limiter.Owing{All: owed}, "", now)
	}
	for _, err := range []error{h.keys.SetQuota(&part, now), h.single.SetQuota(&part, now)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if owed < 0 {
		h.owe(limiter.Owing{All: owed}, "", now)
	}
}

// take takes all available permits of a key, and returns their number in each store.
func (h *holder) take(key string, now time.Duration) (keyed, single int64) {
	ask := limiter.Request{Kind: limiter.AtMost, N: math.MaxInt32}
	return h.keys.Do(now, rules.Hash([]byte(key)), []byte(key), ask).Taken, h.single.Do(now, ask).Taken
}

const start = 400 * 24 * time.Hour

// A new member starts empty and earns its share. A share that shrinks and grows again keeps its
// permits. A share that grows beyond that earns the rest.
func TestHolding(t *testing.T) {
	q := &rules.Quota{Rate: rules.Rate{N: 80, Per: time.Hour}, Burst: 80}
	minute := 45 * time.Second // in which the fleet earns a permit
	for _, c := range []struct {
		name string
		run  func(h *holder, now *time.Duration)
		want int64
	}{
		{"nothing happens", func(*holder, *time.Duration) {}, 10},
		{"empty", func(h *holder, now *time.Duration) { h.owe(limiter.Owing{All: h.Empty(*now)}, "k", *now) }, 0},
		{"empty, and part of more than it knew", func(h *holder, now *time.Duration) {
			h.resize(t, q, 1, *now)
			h.owe(limiter.Owing{All: h.Empty(*now)}, "k", *now)
			h.resize(t, q, 8, *now)
		}, 0},
		{"earned", func(h *holder, now *time.Duration) {
			h.owe(limiter.Owing{All: h.Empty(*now)}, "k", *now)
			*now += 24 * minute
		}, 3},
		{"accepted", func(h *holder, now *time.Duration) {
			h.owe(limiter.Owing{All: h.Empty(*now)}, "k", *now)
			h.owe(limiter.Owing{All: -h.Accept(4, *now)}, "k", *now)
		}, 4},
		{"one key had less", func(h *holder, now *time.Duration) {
			h.owe(limiter.Owing{All: h.Empty(*now)}, "k", *now)
			h.owe(limiter.Owing{All: -h.Accept(8, *now), Of: map[uint64]float64{limiter.KeyID([]byte("k")): 5}}, "k", *now)
		}, 3},
		{"inherited late", func(h *holder, now *time.Duration) {
			h.owe(limiter.Owing{All: h.Empty(*now)}, "k", *now)
			h.owe(h.Inherit(Handover{Left: 8}, 3*minute, *now), "k", *now) // others may have earned 3
		}, 5},
		{"a joiner comes and leaves", func(h *holder, now *time.Duration) {
			h.resize(t, q, 9, *now)
			h.resize(t, q, 8, *now)
		}, 10},
		{"a joiner comes, and leaves when it has earned half of its part", func(h *holder, now *time.Duration) {
			h.resize(t, q, 10, *now)
			*now += 40 * minute
			h.resize(t, q, 8, *now)
		}, 9},
		{"a crash", func(h *holder, now *time.Duration) { h.resize(t, q, 4, *now) }, 10},
		{"a crash, long ago", func(h *holder, now *time.Duration) {
			h.resize(t, q, 4, *now)
			*now += 40 * minute
		}, 20},
		{"a crash and a replacement", func(h *holder, now *time.Duration) {
			h.resize(t, q, 4, *now)
			h.resize(t, q, 8, *now)
		}, 10},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, known), func(t *testing.T) {
				h, now := newHolder(t, q, 8), start
				if known { // it is in the table, and full
					h.keys.Do(now-time.Hour, rules.Hash([]byte("k")), []byte("k"), limiter.Request{N: 1})
				}
				c.run(h, &now)
				if keyed, single := h.take("k", now); keyed != c.want || single != c.want {
					t.Errorf("%d and %d permits, want %d", keyed, single, c.want)
				}
				if keyed, _ := h.take("other", now); c.name != "one key had less" && keyed != c.want {
					t.Errorf("%d permits of another key, want %d", keyed, c.want)
				}
			})
		}
	}
}

// All instances of a fleet together never hold more than the burst. Within any time they never
// admit more than the burst and the permits earned in it. This holds however the number of
// instances changes, is late, or passes permits on.
func TestHoldingsTogether(t *testing.T) {
	for _, q := range []rules.Quota{
		{Rate: rules.Rate{N: 80, Per: time.Hour}, Burst: 80},
		{Rate: rules.Rate{N: 600, Per: time.Minute}, Burst: 90},
		{Rate: rules.Rate{N: 80, Per: time.Hour}, Burst: 80, Algorithm: rules.LeakyBucket},
		{Rate: rules.Rate{N: 80, Per: time.Hour}, Burst: 80, Penalty: time.Millisecond},
		{Rate: rules.Rate{N: 96, Per: time.Hour}, Algorithm: rules.SlidingLog},
	} {
		q = q.WithDefaults()
		t.Run(fmt.Sprint(q.Algorithm, q.Burst, q.Penalty), func(t *testing.T) {
			for seed := range uint64(60) {
				mixHoldings(t, &q, rand.New(rand.NewPCG(seed, 9)))
			}
		})
	}
}

// admitted is the number of permits granted for a key, and the time.
type admitted struct {
	at time.Duration
	n  int64
}

func mixHoldings(t *testing.T, q *rules.Quota, r *rand.Rand) {
	t.Helper()
	now := start
	fleet := []*holder{newHolder(t, q, 2), newHolder(t, q, 2)}
	granted := map[string][]admitted{}
	fill := time.Duration(q.Burst) * time.Duration(q.Rate.Interval())
	var log []string
	note := func(what ...any) { log = append(log, fmt.Sprintln(append([]any{now - start}, what...)...)) }
	join := func() *holder { // the others learn of it at once
		for _, h := range fleet {
			h.resize(t, q, len(fleet)+1, now)
		}
		h := newHolder(t, q, len(fleet)+1)
		h.owe(limiter.Owing{All: h.Empty(now)}, "", now)
		fleet = append(fleet, h)
		return h
	}
	for range 200 {
		if r.IntN(20) == 0 { // a count that is off, for a moment
			n := 1 + r.IntN(9)
			for _, h := range fleet {
				h.resize(t, q, n, now)
			}
			for _, h := range fleet {
				h.resize(t, q, len(fleet), now)
			}
			note("blip", n)
		}
		if r.IntN(2) == 0 {
			now += time.Duration(r.Int64N(int64(fill) / 20))
		}
		i := r.IntN(len(fleet))
		key := fmt.Sprint(r.IntN(3))
		switch move := r.IntN(14); {
		case move < 6:
			ask := limiter.Request{Kind: limiter.AtMost, N: 1 + r.Int64N(q.Burst)}
			n := fleet[i].keys.Do(now, rules.Hash([]byte(key)), []byte(key), ask).Taken
			granted[key] = append(granted[key], admitted{now, n})
			note("take", i, "key", key, n)
		case move < 8: // it hears who has crashed
			fleet[i].resize(t, q, len(fleet), now)
			note("hear", i, len(fleet))
		case move < 10 && len(fleet) < 7:
			join()
			note("join")
		case move == 10 && len(fleet) > 1:
			fleet = slices.Delete(fleet, i, i+1)
			note("crash", i)
		case move > 10 && len(fleet) > 1: // one is replaced, and the other comes before or after
			h, before := fleet[i], r.IntN(2) == 0
			var j *holder
			if before {
				j = join()
			}
			spent, all := h.keys.Spent(now)
			left := h.Leave(now, spent, all, 2)
			fleet = slices.DeleteFunc(fleet, func(x *holder) bool { return x == h })
			if r.IntN(2) == 0 {
				for _, h := range fleet {
					h.resize(t, q, len(fleet), now)
				}
			}
			age := time.Duration(r.Int64N(int64(fill) / 20))
			now += age
			if !before {
				j = join()
			}
			by := j.Inherit(left, age, now)
			j.owe(by, "", now)
			note("replaced", i, "before", before, "left", left, "owing", by)
		}
	}
	for key, all := range granted {
		for i := range all {
			sum := int64(0)
			for _, g := range all[i:] {
				sum += g.n
				most := float64(q.Burst)
				if d := g.at - all[i].at; !q.Algorithm.Windowed() {
					most += float64(d) / float64(q.Rate.Interval())
				} else {
					most *= 1 + float64(d/q.Rate.Per)
				}
				if float64(sum) > most+1e-3 {
					t.Fatalf("%d of key %s from %v to %v, want at most %.2f\n%s", sum, key, all[i].at-start, g.at-start, most, log)
				}
			}
		}
	}
}

// A key that is full when all keys begin to owe owes as well, even if it is not used for long.
func TestDroppedKeysOwe(t *testing.T) {
	q := &rules.Quota{Rate: rules.Rate{N: 80, Per: time.Hour}, Burst: 80}
	h, now := newHolder(t, q, 1), start
	key := []byte("k")
	h.keys.Do(now, rules.Hash(key), key, limiter.Request{N: 40})
	h.keys.Owe(limiter.Owing{All: 40}, now)
	part := rules.Quota{Rate: rules.Rate{N: 8, Per: time.Hour}, Burst: 80} // ten times slower
	if err := h.keys.SetQuota(&part, now); err != nil {
		t.Fatal(err)
	}
	now += time.Hour // by the rate of before it would be full
	h.keys.Sweep(now)
	if got := h.keys.Do(now, rules.Hash(key), key, limiter.Request{Kind: limiter.AtMost, N: 80}); got.Taken != 8 {
		t.Errorf("%d permits, want those of an hour, 8", got.Taken)
	}
}
