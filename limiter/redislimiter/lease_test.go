package redislimiter

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// leases settles accounts of one key at times of a test's own.
type leases struct {
	t     *testing.T
	store *Store
	clock *hand
	quota *rules.Quota
}

func newLeases(t *testing.T, burst int64) *leases {
	clock := new(hand)
	clock.ns.Store(int64(time.Hour))
	store := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), func(c *Config) {
		c.Clock = func() time.Duration { return time.Duration(clock.ns.Load()) }
	})
	return &leases{t, store, clock, &rules.Quota{Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: burst}}
}

// settle settles one account.
func (l *leases) settle(a fleet.Ask) fleet.Answer {
	l.t.Helper()
	a.Name, a.Key, a.Quota = "users", "ann", l.quota
	a.Period, a.Lasts = 50*time.Millisecond, 200*time.Millisecond
	var answers [1]fleet.Answer
	l.store.Settle(l.t.Context(), []fleet.Ask{a}, answers[:])
	if answers[0].Err != nil {
		l.t.Fatal(answers[0].Err)
	}
	return answers[0]
}

// free returns the permits that an exact caller finds.
func (l *leases) free() int64 {
	l.t.Helper()
	got, err := l.store.Do(context.Background(), limiter.Op{Name: "users", Key: "ann", Quota: l.quota, Request: limiter.Request{Kind: limiter.Peek, N: 1}})
	must(l.t, err)
	return got.Remaining
}

func (l *leases) after(d time.Duration) { l.clock.ns.Add(int64(d)) }

func (l *leases) check(what string, got, want int64) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// The accounts of many keys are settled in one call, wherever the keys are.
func settleManyKeys(t *testing.T, client redis.UniversalClient) {
	store := storeOf(t, client, func(c *Config) { c.Namespace = namespaceOf(t) })
	quota := &rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 100}
	window := &rules.Quota{Algorithm: rules.SlidingLog, Rate: rules.Rate{N: 100, Per: time.Hour}, Burst: 100}
	const n = 40
	asks, answers := make([]fleet.Ask, n), make([]fleet.Answer, n)
	for i := range asks {
		asks[i] = fleet.Ask{
			Name: "users", Key: strconv.Itoa(i), Quota: quota, Holder: "a", Number: 1, Want: int64(i + 1), Demand: 1,
			Period: 50 * time.Millisecond, Lasts: time.Minute,
		}
	}
	asks[7].Quota = window
	store.Settle(t.Context(), asks, answers)
	for i, a := range answers {
		switch {
		case i == 7:
			if !errors.Is(a.Err, limiter.ErrUnsupported) {
				t.Errorf("a window: %+v", a)
			}
		case a.Err != nil || a.Granted != int64(i+1) || a.Free != 99-int64(i):
			t.Errorf("key %d: %+v", i, a)
		}
	}
}

// What instances hold is missing for exact callers, and is not earned while it is held.
func TestHeldPermitsAreNotEarned(t *testing.T) {
	t.Parallel()
	l := newLeases(t, 100)
	l.check("granted", l.settle(fleet.Ask{Holder: "a", Number: 1, Want: 40, Demand: 100}).Granted, 40)
	l.check("free", l.free(), 60)
	l.after(100 * time.Millisecond)
	l.check("free after 100 ms", l.free(), 60)
	op := limiter.Op{Name: "users", Key: "ann", Quota: l.quota, Request: limiter.Request{N: 30}}
	got, err := l.store.Do(t.Context(), op)
	must(t, err)
	l.check("left by an exact caller", got.Remaining, 30)
	l.after(20 * time.Millisecond)
	l.check("earned up to what is held", l.free(), 50)
	back := op
	back.Request = got.Return()
	_, err = l.store.Do(t.Context(), back)
	must(t, err)
	l.check("returned up to what is held", l.free(), 60)
	l.after(time.Second)
	l.check("free once the stock has ended", l.free(), 100)
}

// The bucket's accounts hold whatever is lost, late or repeated.
func TestSettlements(t *testing.T) {
	t.Parallel()
	ask := func(number, spent, hold, want, incarnation int64) fleet.Ask {
		return fleet.Ask{Holder: "a", Number: number, Spent: spent, Hold: hold, Want: want, Incarnation: incarnation, Demand: 100}
	}
	t.Run("spent, kept, returned", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 40, 0))
		l.check("free", l.free(), 60)
		second := l.settle(ask(2, 10, 25, 0, first.Incarnation)) // five go back
		l.check("free", l.free(), 65)
		if !second.Valid || second.Incarnation != first.Incarnation || second.Instances != 1 {
			t.Errorf("%+v", second)
		}
		l.check("free after all is returned", l.settle(fleet.Ask{Holder: "a", Number: 3, Spent: 35, Incarnation: first.Incarnation}).Free, 65)
		l.after(35 * time.Millisecond)
		l.check("free once they are earned", l.free(), 100)
	})
	t.Run("an answer is lost", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 40, 0))
		l.settle(ask(2, 10, 30, 10, first.Incarnation))
		l.check("free", l.free(), 50)
		l.settle(ask(3, 15, 25, 0, first.Incarnation)) // without the ten of the lost answer
		l.check("free", l.free(), 60)
	})
	t.Run("an ask is late", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 40, 0))
		l.settle(ask(3, 30, 10, 0, first.Incarnation))
		l.check("free", l.free(), 60)
		if late := l.settle(ask(2, 0, 0, 0, first.Incarnation)); !late.Stale || late.Granted > 0 {
			t.Errorf("%+v", late)
		}
		l.check("free", l.free(), 60)
	})
	t.Run("a stock has ended", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 90, 0))
		l.settle(fleet.Ask{Holder: "b", Number: 1, Demand: 100})
		l.after(219 * time.Millisecond) // and not a ms longer, since it is then earned
		l.settle(fleet.Ask{Holder: "b", Number: 2, Demand: 100, Incarnation: first.Incarnation})
		before := l.free()
		late := l.settle(ask(2, 10, 80, 0, first.Incarnation))
		if late.Valid {
			t.Errorf("%+v", late)
		}
		l.check("free after the refund of what has ended", l.free(), before)
	})
	t.Run("the state is lost", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 40, 0))
		must(t, l.store.client.FlushAll(t.Context()).Err())
		l.after(time.Millisecond)
		second := l.settle(ask(2, 10, 30, 50, first.Incarnation))
		if second.Valid || second.Granted > 0 || second.Incarnation == 0 {
			t.Errorf("%+v", second)
		}
		l.check("free", l.free(), 0)
	})
	t.Run("held under an older state", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 40, 0))
		must(t, l.store.client.FlushAll(t.Context()).Err())
		l.after(time.Millisecond)
		l.settle(fleet.Ask{Holder: "b", Number: 1, Demand: 100, Incarnation: 7})
		if late := l.settle(ask(2, 10, 30, 0, first.Incarnation)); late.Valid {
			t.Errorf("%+v", late)
		}
	})
	t.Run("nobody could ask", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 10, 0))
		l.after(2 * time.Second)
		back := ask(2, 15, 0, 0, first.Incarnation)
		back.Silent = 2 * time.Second
		l.settle(back)
		l.check("free", l.free(), 0)
		l.after(50 * time.Millisecond)
		other := fleet.Ask{Holder: "b", Number: 1, Spent: 30, Silent: 2 * time.Second, Demand: 100}
		l.settle(other) // only what it has admitted is charged
		l.check("free", l.free(), 20)
	})
	t.Run("costs are owed", func(t *testing.T) {
		l := newLeases(t, 100)
		first := l.settle(ask(1, 0, 0, 40, 0))
		owing := ask(2, 500, 0, 10, first.Incarnation)
		owing.Owing = true
		if got := l.settle(owing); got.Granted > 0 || got.Wait <= 0 {
			t.Errorf("%+v", got)
		}
		l.after(399 * time.Millisecond)
		l.check("free while it is owed", l.free(), 0)
		l.after(11 * time.Millisecond)
		l.check("free once it is paid", l.free(), 10)
	})
	t.Run("foreign types", func(t *testing.T) {
		l := newLeases(t, 100)
		base, _ := l.store.keyName("users", "ann")
		must(t, l.store.client.Set(t.Context(), base+":leases", "x", 0).Err())
		l.check("granted", l.settle(ask(1, 0, 0, 40, 0)).Granted, 40)
		l.check("healed", int64(l.store.Stats().Healed), 1)
	})
}
