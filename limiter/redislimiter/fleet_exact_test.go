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
