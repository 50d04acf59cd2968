package redislimiter_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// exactRun is a run of a fleet whose instances ask Redis for each request.
func exactRun(load, burst float64) fleetRun {
	return fleetRun{
		instances: 20, rate: 1000, burst: burst, load: load, oneWay: 5 * time.Millisecond,
		lasts: 3 * time.Second, outage: rules.OutageLocal, exact: 1, seed: 1,
	}
}

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

// Whatever the network does to k of N instances, all are admitted at most burst + rate × w, and k/N
// of that in addition.
func TestExactKeepsTheBound(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	runs := 8
	if testing.Short() {
		runs = 2
	}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 34))
		run := exactRun([]float64{0.8, 3, 8}[rnd.IntN(3)], []float64{0.1, 1}[rnd.IntN(2)])
		run.seed, run.instances, run.lasts = seed, 2+rnd.IntN(20), 2*time.Second
		run.skew = []func(int, time.Duration) float64{even, zipf(run.instances, 1), onOff}[rnd.IntN(3)]
		run.oneWay = []time.Duration{200 * time.Microsecond, 5 * time.Millisecond, 14 * time.Millisecond}[rnd.IntN(3)]
		run.jitter, run.loss = 0.2*rnd.Float64(), 0.05*rnd.Float64()
		some := rnd.IntN(run.instances + 1)
		away := time.Duration(rnd.IntN(500)) * time.Millisecond
		every := away + time.Duration(rnd.IntN(1000))*time.Millisecond
		run.away = func(i int, at time.Duration) bool { return i < some && at%every < away }
		burst := float64(run.rate) * run.burst
		beyond := 20 + float64(some)/float64(run.instances)*(burst+float64(run.rate)*run.lasts.Seconds())
		got := simulate(t, addr, run)
		t.Logf("seed %d: %d of %d away for %v each %v, load %v, burst %v, %v one way, loss %.3f: use %.3f, lowest %.0f, may be %.0f",
			seed, some, run.instances, away, every, run.load, run.burst, run.oneWay, run.loss, got.use(), got.worst, -beyond)
		if got.worst < -beyond || got.admitted == 0 {
			t.Errorf("seed %d: %+v", seed, got)
		}
	}
}
