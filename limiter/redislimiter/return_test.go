package redislimiter

import (
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Takes at one instant and within microseconds are all returned in full in reverse order, each at
// its own instant.
func TestReturnsInReverseOrder(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	for _, every := range everyQuota {
		t.Run(every.name, func(t *testing.T) {
			clock := handAt(1_700_000_000 * time.Second)
			s := storeOf(t, client, clock.of)
			if every.quota.WarmUp > 0 { // warm: a cold permit costs more than its return restores
				for range 400 {
					take(t, s, every.quota, "reverse "+every.name, 1)
					clock.pass(100 * time.Millisecond)
				}
				clock.pass(950 * time.Millisecond) // nearly all is paid for, and it is still warm
			}
			var all []limiter.Request
			before := ask(t, s, limiter.Op{Quota: every.quota, Key: "reverse " + every.name, Request: limiter.Request{Kind: limiter.Peek}})
			for i := range 4 {
				r := take(t, s, every.quota, "reverse "+every.name, 1)
				if !r.Allowed {
					t.Fatalf("take %d: %+v", i, r)
				}
				all = append(all, r.Return())
				if i > 0 {
					clock.pass(time.Microsecond)
				}
			}
			var after limiter.Result
			for _, back := range slices.Backward(all) {
				clock.pass(time.Microsecond)
				after = ask(t, s, limiter.Op{Quota: every.quota, Key: "reverse " + every.name, Request: back})
			}
			if after.Remaining < before.Remaining {
				t.Errorf("%d remain, want %d as before", after.Remaining, before.Remaining)
			}
		})
	}
}

// Permits earned at another rate since a take are not returned with it. This holds whichever quota
// asks in between, even if the rate is that of the take again, and if the clock was set back.
func TestReturnAfterAnotherRate(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	slow, fast := quota(rules.Quota{Rate: rate(1, time.Second), Burst: 100}), quota(rules.Quota{Rate: rate(10, time.Second), Burst: 100})
	for name, between := range map[string]func(s *Store, clock *hand){
		"another rate": func(s *Store, clock *hand) {
			take(t, s, fast, "another rate", 1)
			clock.pass(5 * time.Second) // all but one are earned
			take(t, s, fast, "another rate", 1)
			take(t, s, slow, "another rate", 20)
		},
		"another rate, promised": func(s *Store, clock *hand) {
			take(t, s, fast, "another rate, promised", 1)
			clock.pass(5 * time.Second)
			take(t, s, fast, "another rate, promised", 1)
			ask(t, s, limiter.Op{Quota: slow, Key: "another rate, promised", Request: limiter.Request{Kind: limiter.Reserve, N: 120, Within: time.Hour}})
		},
		"another clock": func(s *Store, clock *hand) {
			clock.pass(50 * time.Second) // all are earned
			take(t, s, slow, "another clock", 20)
			clock.pass(-time.Hour)
			take(t, s, slow, "another clock", 1)
			clock.pass(time.Hour)
			take(t, s, slow, "another clock", 20)
		},
	} {
		clock := handAt(1_700_000_000 * time.Second)
		s := storeOf(t, client, clock.of)
		held := take(t, s, slow, name, 50)
		between(s, clock)
		before := ask(t, s, limiter.Op{Quota: slow, Key: name, Request: limiter.Request{Kind: limiter.Peek}})
		after := ask(t, s, limiter.Op{Quota: slow, Key: name, Request: held.Return()})
		if came := before.ResetAfter - after.ResetAfter; came > time.Second {
			t.Errorf("%s: what is earned in %v came back of a take that was earned", name, came)
		}
	}
}

// A Return without a mark returns the last take, as it does in memory.
func TestReturnWithoutMark(t *testing.T) {
	s := storeOf(t, storeClient(t, testenv.Redis(t).Addr(), nil), handAt(1_700_000_000*time.Second).of)
	q := everyQuota[0].quota
	take(t, s, q, "markless", 3)
	r := ask(t, s, limiter.Op{Quota: q, Key: "markless", Request: limiter.Request{Kind: limiter.Return, N: 2}})
	if r.Remaining != q.Burst-1 {
		t.Errorf("%d remain, want %d", r.Remaining, q.Burst-1)
	}
}
