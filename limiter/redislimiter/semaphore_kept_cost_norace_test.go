//go:build !race

package redislimiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Kept leases make a tenth of the calls, and use the permits as well.
func TestKeptPermitsCost(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	for i, c := range []struct {
		name      string
		instances int
		permits   int64
		workers   int // of an instance
		wait      time.Duration
		think     time.Duration
	}{
		{"one instance", 1, 8, 16, time.Second, 0},
		{"waiting", 3, 8, 8, time.Second, 0},
		{"waiting, many permits", 3, 60, 40, time.Second, 0},
		{"denied", 3, 60, 40, 0, 2 * time.Millisecond},
		{"enough permits", 3, 60, 20, 0, 0},
	} {
		if testing.Short() && i > 1 {
			continue
		}
		run := permitsRun{instances: c.instances, permits: c.permits, workers: each(c.workers), wait: c.wait, handler: steady(5 * time.Millisecond), lasts: time.Second, oneWay: 100 * time.Microsecond, seed: 1}
		if c.think > 0 {
			run.think = func(int) time.Duration { return c.think }
		}
		kept := simulatePermits(t, addr, run)
		run.exact = true
		exact := simulatePermits(t, addr, run)
		perRequest := func(r *permitsResult) float64 { return float64(r.calls) / float64(r.total()) }
		t.Logf("%s: %.0f calls/s kept, %.0f exact; %.3f and %.3f a request; in use %.2f and %.2f; served %v and %v",
			c.name, float64(kept.calls), float64(exact.calls), perRequest(&kept), perRequest(&exact), kept.inUse, exact.inUse, kept.served, exact.served)
		if perRequest(&kept) > perRequest(&exact)/10 || kept.inUse < 0.95*exact.inUse {
			t.Errorf("%s: %+v", c.name, kept)
		}
	}
}
