package redislimiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// Keys of semaphores, permits and fleets with a foreign type heal on their first use, whichever key
// it is and whichever call comes first.
func TestForeignSemaphoresPermitsAndMembersHeal(t *testing.T) {
	t.Parallel()
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	ctx := t.Context()
	poison := func(key string) {
		t.Helper()
		must(t, client.Del(ctx, key).Err())
		must(t, client.RPush(ctx, key, "foreign").Err())
	}

	s := semaphoreOf(t, client, nil)
	ask := semaphore.Request{Permits: 2}
	acquire := func(key string) semaphore.Lease {
		t.Helper()
		lease, d, err := s.Acquire(ctx, key, ask)
		must(t, err)
		if !d.Allowed || d.Remaining != 1 {
			t.Fatalf("%+v, %+v", lease, d)
		}
		return lease
	}
	for _, suffix := range []string{"", waitingSuffix} {
		key := "k" + suffix
		poison(semaphoreKey(s.cfg.Namespace, key) + suffix)
		lease := acquire(key)
		poison(semaphoreKey(s.cfg.Namespace, key) + suffix)
		lease.Release()
		acquire(key).Release()
	}
	lease := acquire("renewed")
	poison(semaphoreKey(s.cfg.Namespace, "renewed"))
	s.renew(ctx)
	select {
	case <-lease.Lost():
	case <-time.After(patience):
		t.Error("a lease is held that Redis has lost")
	}
	if got := s.Stats(); got.Healed < 4 || got.Failures > 0 {
		t.Errorf("%+v", got)
	}

	p := permitsOf(t, client, nil)
	for i, key := range p.keys {
		poison(key)
		if set, err := p.TrySetRate(ctx, permitRate(4, time.Hour)); err != nil || set != (i == 0) {
			t.Fatalf("key %d: %v, %v", i, set, err)
		}
		poison(p.keys[1]) // the taken permits
		took, err := p.TryAcquire(ctx, 4)
		if err != nil || !took {
			t.Fatalf("key %d: %v, %v", i, took, err)
		}
		if took, err = p.TryAcquire(ctx, 1); err != nil || took {
			t.Fatalf("key %d: %v, %v", i, took, err)
		}
	}

	m := membersOf(t, client, "api-1", nil)
	poison(m.key)
	m.beat(ctx)
	if got := m.Stats(); got.Count != 1 || !got.Connected || got.Failures > 0 || got.Healed != 1 {
		t.Errorf("%+v", got)
	}
}
