package redislimiter

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// An instance whose request waits gets its turn within about two periods, although another one
// keeps its permits busy.
func TestKeptPermitsFair(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	run := permitsRun{
		instances: 2, permits: 8, wait: 2 * time.Second, handler: steady(5 * time.Millisecond), lasts: 3 * time.Second, oneWay: 100 * time.Microsecond, seed: 2,
		workers: func(i int) int { return []int{16, 1}[i] },
		think:   func(i int) time.Duration { return []time.Duration{0, 200 * time.Millisecond}[i] },
	}
	got := simulatePermits(t, addr, run)
	t.Logf("served %v, longest waits %v", got.served, got.longest)
	if got.served[1] < 8 || got.longest[1] > 2*keptPeriod+10*time.Millisecond {
		t.Errorf("%+v", got)
	}
	run.workers, run.think, run.lasts = each(16), nil, 8*time.Second
	got = simulatePermits(t, addr, run)
	t.Logf("served %v, longest waits %v", got.served, got.longest)
	if part := float64(got.served[0]) / float64(got.total()); part < 0.4 || part > 0.6 {
		t.Errorf("parts of one kind: %.2f, %+v", part, got)
	}
}

// However instances crash, lose messages and are cut off, and however the number of permits
// changes, no more requests are in flight than there are permits.
func TestKeptPermitsBound(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	var lost uint64
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var changed atomic.Int64 // time of the last change
		wait := time.Duration(seed%2) * time.Second
		const lease = 1200 * time.Millisecond
		run := permitsRun{
			instances: 6, permits: 12, workers: each(6), wait: wait, handler: between(time.Millisecond, 10*time.Millisecond),
			think: func(int) time.Duration { return 3 * time.Millisecond },
			lasts: 8 * time.Second, lease: lease, oneWay: 300 * time.Microsecond, loss: 0.005, seed: seed,
			event: func(sim *permitsSim, at time.Duration) {
				switch {
				case at == 3*time.Second || at == 5*time.Second:
					sim.all[at/time.Second].stop() // it crashes
				case at%(300*time.Millisecond) == 0:
					for k, i := range sim.all { // one after the other for longer than a lease
						long := at/(1500*time.Millisecond)%2 == 1 && at/(3*time.Second) == time.Duration(k)
						i.cut.Store(long || rnd.IntN(8) == 0)
					}
				case at%(700*time.Millisecond) == 0:
					sim.permits.Store(4 + rnd.Int64N(16))
					changed.Store(int64(at))
				}
			},
		}
		// Requests that began before a change may go on, and so may asks under way. A line that no one
		// joins learns of the change when the next one does.
		run.excused = func(at time.Duration) bool {
			return changed.Load() > 0 && at-time.Duration(changed.Load()) < 60*time.Millisecond
		}
		got := simulatePermits(t, addr, run)
		var reused uint64
		for _, s := range got.stats {
			reused, lost = reused+s.Reused, lost+s.Lost
		}
		t.Logf("seed %d: served %v, denied %v, %.2f in use, %d reused, %d lost, %d calls", seed, got.served, got.denied, got.inUse, reused, lost, got.calls)
		if reused < 500 || got.stale > 2 { // a lease may be lost at the instant in which it is left
			t.Errorf("%+v", got)
		}
	}
	if lost == 0 {
		t.Error("no lease was lost")
	}
}

// While Redis is unavailable, leases are left to other requests until their time ends.
func TestKeptPermitsRedisAway(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	var served [3]int64 // when Redis becomes unavailable, later, and after the leases have ended
	got := simulatePermits(t, addr, permitsRun{
		instances: 1, permits: 4, workers: each(4), handler: steady(5 * time.Millisecond), lasts: 5 * time.Second, lease: 1200 * time.Millisecond, oneWay: 100 * time.Microsecond, seed: 5,
		event: func(sim *permitsSim, at time.Duration) {
			sim.all[0].cut.Store(at >= 500*time.Millisecond && at < 2500*time.Millisecond)
			for i, then := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
				if at == then {
					sim.mu.Lock()
					served[i] = sim.result.served[0]
					sim.mu.Unlock()
				}
			}
		},
	})
	if served[1]-served[0] < 300 || served[2]-served[1] > 600 || got.total() == served[2] || got.stale > 0 || got.stats[0].Lost != 4 {
		t.Errorf("served %v, %+v", served, got)
	}
}

// A lease that was left to another request is not released by the one that had it before.
func TestKeptPermitsReleasedTwice(t *testing.T) {
	t.Parallel()
	s := semaphoreOf(t, clientAt(t, testenv.Redis(t).URL()), nil)
	testenv.Running(t, s.Run)
	ask := semaphore.Request{Permits: 8, Keep: true}
	eventually(t, "a lease that is left to the next request", func() bool {
		first, reused := holds(t, s, ask), s.Stats().Reused
		first.Release()
		second := holds(t, s, ask)
		defer second.Release()
		if s.Stats().Reused == reused {
			return false
		}
		if first.Release(); s.Stats().Held != 1 {
			t.Errorf("released twice: %+v", s.Stats())
		}
		return true
	})
}

// After a flush the leases that requests hold are lost. The next look finds that, so none is left to
// another request from then on.
func TestKeptPermitsFlushed(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	const flush = time.Second
	got := simulatePermits(t, addr, permitsRun{
		instances: 3, permits: 8, workers: func(i int) int { return []int{3, 3, 8}[i] },
		starts:  func(i int) time.Duration { return []time.Duration{0, 0, flush + keptPeriod}[i] },
		handler: steady(5 * time.Millisecond), lasts: 2 * time.Second, oneWay: 100 * time.Microsecond, seed: 4,
		event: func(sim *permitsSim, at time.Duration) {
			if at == flush {
				must(t, sim.plain.FlushDB(t.Context()).Err())
				sim.setClock()
			}
		},
	})
	if lost := got.stats[0].Lost + got.stats[1].Lost; lost != 6 || got.served[2] == 0 {
		t.Errorf("%d leases were lost, want all 6: %+v", lost, got)
	}
}
