package redislimiter

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func (s *Store) state(name, key string) string {
	full, _ := s.keyName(name, key)
	return full
}

// ttlOf returns the time to live of a key, which must have one.
func ttlOf(tb testing.TB, client *redis.Client, key string) time.Duration {
	tb.Helper()
	ttl, err := client.PTTL(context.Background(), key).Result()
	must(tb, err)
	if ttl <= 0 {
		tb.Fatalf("%s: PTTL is %v", key, ttl)
	}
	return ttl
}

func TestStateOutlivesWhatWasTaken(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	clock := handAt(1_700_000_000*time.Second + 123_457*time.Microsecond)
	const jitter = 30 * time.Second
	s := storeOf(t, client, func(c *Config) { c.Jitter = jitter; clock.of(c) })
	for _, per := range []time.Duration{time.Millisecond, 7 * time.Second, 24 * time.Hour} {
		for _, every := range everyQuota {
			t.Run(every.name+" "+per.String(), func(t *testing.T) {
				q := *every.quota
				if q.Calendar == "" {
					q.Rate.Per = per
				}
				key := s.state("limit", per.String()+every.name)
				for i, a := range []limiter.Request{
					{N: 1}, {N: 2}, {Kind: limiter.AtMost, N: 3}, {Kind: limiter.Charge, N: 100},
					{Kind: limiter.Reserve, N: 1, Within: 100 * 24 * time.Hour}, {Kind: limiter.Return, N: 1},
				} {
					begin := time.Now()
					r := ask(t, s, limiter.Op{Quota: &q, Key: per.String() + every.name, Request: a})
					if r.ResetAfter == 0 && q.Algorithm.Windowed() {
						continue
					}
					ttl := ttlOf(t, client, key)
					if ttl < r.ResetAfter+time.Minute-time.Since(begin) || i == 0 && ttl > r.ResetAfter+time.Minute+jitter+time.Second {
						t.Errorf("%+v: kept for %v, and as new in %v", a, ttl, r.ResetAfter)
					}
					clock.pass(per / 7)
				}
			})
		}
	}
}

func TestDenialsWriteNothing(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	clock := handAt(1_700_000_000 * time.Second)
	s := storeOf(t, client, clock.of)
	for _, every := range everyQuota {
		ask(t, s, limiter.Op{Quota: every.quota, Key: every.name, Request: limiter.Request{Kind: limiter.Charge, N: 100}})
		dump := func() string { return client.Dump(context.Background(), s.state("limit", every.name)).Val() }
		before := dump()
		clock.pass(time.Millisecond)
		for _, a := range []limiter.Request{{N: 1}, {N: 11}, {N: -1}, {Kind: limiter.Peek, N: 1}, {Kind: limiter.AtMost, N: 3}, {Kind: limiter.Reserve, N: 3}, {Kind: limiter.Charge}, {}} {
			ask(t, s, limiter.Op{Quota: every.quota, Key: every.name, Request: a})
			if dump() != before {
				t.Errorf("%s: %+v changed the state", every.name, a)
			}
		}
	}
	if n := client.DBSize(context.Background()).Val(); n != int64(len(everyQuota)) {
		t.Errorf("%d keys, want %d", n, len(everyQuota))
	}
	for _, every := range everyQuota {
		ask(t, s, limiter.Op{Quota: every.quota, Key: "never seen", Request: limiter.Request{Kind: limiter.Peek, N: 1}})
		ask(t, s, limiter.Op{Quota: every.quota, Key: "never seen", Request: limiter.Request{N: 11}})
	}
	if n := client.DBSize(context.Background()).Val(); n != int64(len(everyQuota)) {
		t.Errorf("%d keys after asks that take nothing, want %d", n, len(everyQuota))
	}
}

// The end of a fixed window is set with the first hit, and no later one moves it.
func TestExpiryOfAWindowIsSetOnce(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	s := storeOf(t, client, nil)
	for _, q := range []*rules.Quota{
		quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(10, time.Hour)}),
		quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(10, 365*24*time.Hour), Calendar: rules.CalendarYear}),
	} {
		var first time.Duration
		for i := range 12 {
			take(t, s, q, "key", 1)
			end, err := client.PExpireTime(context.Background(), s.state("limit", "key")).Result()
			must(t, err)
			if first == 0 {
				first = end
			}
			if end != first {
				t.Errorf("hit %d moves the expiry by %v", i, end-first)
			}
			time.Sleep(2 * time.Millisecond) // a renewed expiry shows
		}
		ask(t, s, limiter.Op{Quota: q, Key: "key", Request: limiter.Request{Kind: limiter.Forget}})
	}
	if n := client.DBSize(context.Background()).Val(); n != 0 {
		t.Errorf("%d keys after Forget", n)
	}
}

func TestKeysAreForgottenWhenTheyAreAsNew(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	clock := handAt(1_700_000_000 * time.Second)
	s := storeOf(t, client, clock.of)
	for _, every := range everyQuota {
		if !every.quota.Algorithm.Windowed() {
			continue
		}
		r := take(t, s, every.quota, every.name, 3)
		ask(t, s, limiter.Op{Quota: every.quota, Key: every.name, Request: limiter.Request{Kind: limiter.Return, N: 3, Mark: r.Mark}})
		clock.pass(2 * time.Minute)
		ask(t, s, limiter.Op{Quota: every.quota, Key: every.name, Request: limiter.Request{Kind: limiter.Return, N: 3, Mark: r.Mark}})
		if n := client.Exists(context.Background(), s.state("limit", every.name)).Val(); n != 0 {
			t.Errorf("%s: the key of a state that is as new is there", every.name)
		}
	}
}
