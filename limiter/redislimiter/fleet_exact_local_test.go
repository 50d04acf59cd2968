//go:build !race

// The race detector finds in this simulation what it finds in fleet_exact_test.go's, and takes five
// times as long.

package redislimiter_test

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// cutOff returns that some instances are without Redis from a second on, for so long.
func cutOff(some int, lasts time.Duration) func(int, time.Duration) bool {
	return func(i int, at time.Duration) bool { return i < some && at > time.Second && at < time.Second+lasts }
}

// With scope: exact and local, lost messages and an outage for all instances exceed the limit by no
// more than a few permits that are under way, also once all have charged what they granted without
// Redis, three seconds later. No request waits for longer than a time-out.
func TestExactWithLocal(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	for i, c := range []struct {
		name   string
		load   float64
		burst  float64
		edit   func(*fleetRun)
		beyond float64 // permits beyond burst + rate * w
		use    float64
	}{
		{"1% lost", 3, 0.1, func(r *fleetRun) { r.loss = 0.01 }, 10, 0.95},
		{"1% lost, a crowd", 20, 0.1, func(r *fleetRun) { r.loss = 0.01 }, 10, 0.95},
		{"5% lost", 3, 1, func(r *fleetRun) { r.loss = 0.05 }, 10, 0.9},
		{"5% lost, a crowd", 20, 0.1, func(r *fleetRun) { r.loss = 0.05 }, 10, 0.85},
		{"5% lost, on and off", 3, 1, func(r *fleetRun) { r.loss, r.skew = 0.05, onOff }, 10, 0.9},
		{"half of the answers late", 3, 0.1, func(r *fleetRun) { r.oneWay, r.jitter = 15*time.Millisecond, 0.2 }, 10, 0.8},
		{"away for all", 3, 1, func(r *fleetRun) { r.lasts, r.away = 7*time.Second, cutOff(20, time.Second) }, 20, 0.9},
		{"away for all, Zipf", 3, 1, func(r *fleetRun) {
			r.lasts, r.away, r.skew = 7*time.Second, cutOff(20, time.Second), zipf(20, 1)
		}, 10, 0.9},
		{"away for all, again and again", 3, 0.1, func(r *fleetRun) {
			r.away = func(_ int, at time.Duration) bool { return at%(200*time.Millisecond) < 100*time.Millisecond }
		}, 20, 0.9},
		// A quarter of the limit for as long as a quarter of the instances is without Redis, at most 1.25 s.
		{"away for a quarter", 3, 0.1, func(r *fleetRun) { r.away = cutOff(5, 500*time.Millisecond) }, 0.25 * (100 + 1000*1.25), 1},
		{"one alone", 0.5, 0.1, func(r *fleetRun) { r.instances = 1; r.away = cutOff(1, time.Second) }, 1, 0.9},
		{"one alone, a crowd", 3, 1, func(r *fleetRun) { r.instances = 1; r.away = cutOff(1, time.Second) }, 1, 0.9},
	} {
		if testing.Short() && i%3 != 2 {
			continue
		}
		run := exactRun(c.load, c.burst)
		c.edit(&run)
		got := simulate(t, addr, run)
		t.Logf("%s: %.3f of an ideal bucket, lowest %.0f, %d without Redis, %.0f calls/s, longest wait %v",
			c.name, got.use(), got.worst, got.local, got.calls, got.longest)
		if got.worst < -c.beyond || got.use() < c.use || got.longest > 30*time.Millisecond {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
