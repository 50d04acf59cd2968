package redislimiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// A replica takes the primary's place. Leases stay held as far as they had been replicated, the
// count of members does not fall, and every operation continues to work.
func TestFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	set := testenv.RedisSentinel(t)
	client := clientAt(t, set.URL())
	ctx := t.Context()
	s := semaphoreOf(t, client, nil)
	testenv.Running(t, s.Run)
	p := permitsOf(t, client, nil)
	a := membersOf(t, client, "api-1", nil)
	b := membersOf(t, client, "api-2", nil)
	testenv.Running(t, a.Run)
	testenv.Running(t, b.Run)
	eventually(t, "both members", func() bool { return counts(a, b) == "2 2" })
	must(t, p.SetRate(ctx, permitRate(3, time.Hour)))
	takesNow(t, p, 2, true)
	l := holds(t, s, semaphore.Request{Permits: 1})
	if n, err := client.Do(ctx, "WAIT", 1, patience.Milliseconds()).Int(); n != 1 {
		t.Fatalf("%d replicas have it: %v", n, err)
	}
	former := set.Primary()
	set.KillPrimary()
	eventually(t, "an outage", func() bool { return !a.Stats().Connected })
	set.AwaitFailover(former)
	eventually(t, "one permit", func() bool { n, err := p.AvailablePermits(ctx); return err == nil && n == 1 })
	eventually(t, "an answer", func() bool {
		other, d, err := s.Acquire(ctx, "k", semaphore.Request{Permits: 1})
		if other != noLease {
			t.Fatalf("a second lease of one permit: %+v", d)
		}
		return err == nil
	})
	eventually(t, "both members", func() bool { return a.Stats().Connected && b.Stats().Connected })
	if got := counts(a, b); got != "2 2" {
		t.Errorf("members: %s", got)
	}
	eventually(t, "a renewal", func() bool { return s.renew(ctx) })
	if isLost(l) {
		t.Errorf("the lease was lost: %+v", s.Stats())
	}
	l.Release()
	eventually(t, "the permit", func() bool {
		l, _, err := s.Acquire(ctx, "k", semaphore.Request{Permits: 1})
		if l != noLease {
			l.Release()
		}
		return err == nil && l != noLease
	})
}
