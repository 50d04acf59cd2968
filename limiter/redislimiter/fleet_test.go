package redislimiter_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// Whatever the network does, all instances together are admitted at most burst + rate × w.
func TestFleetKeepsTheBound(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	runs := 12
	if testing.Short() {
		runs = 3
	}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		n := 2 + rnd.IntN(30)
		skews := map[string]func(int, time.Duration) float64{"even": even, "zipf": zipf(n, 1+rnd.Float64()), "one": onOne(n), "moving": moving(n, 1), "on-off": onOff}
		names := []string{"even", "zipf", "one", "moving", "on-off"}
		skew := names[rnd.IntN(len(names))]
		run := fleetRun{
			instances: n, rate: []int64{500, 1000, 5000}[rnd.IntN(3)], burst: []float64{0.1, 0.3, 1, 2}[rnd.IntN(4)],
			load: []float64{0.8, 1.2, 3, 8}[rnd.IntN(4)], skew: skews[skew], lasts: 3 * time.Second,
			oneWay: []time.Duration{200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}[rnd.IntN(5)],
			loss:   []float64{0, 0.01, 0.3}[rnd.IntN(3)], outage: rules.OutageClosed, exact: []int{0, 0, 3}[seed%3], seed: seed,
			wait: []time.Duration{0, 300 * time.Millisecond}[seed%2],
			event: func(sim *fleetSim, at time.Duration) {
				switch i := sim.all[sim.rnd.IntN(len(sim.all))]; {
				case sim.rnd.IntN(300) > 0:
				case i.stop != nil && sim.rnd.IntN(2) == 0:
					i.crashed.Store(sim.rnd.IntN(2) == 0)
					i.stop()
					i.stop = nil
				case len(sim.all) < 40:
					sim.join(t)
				}
			},
		}
		got := simulate(t, addr, run)
		t.Logf("seed %d: %d instances, exact %d, wait %v, %d/s, burst %v, load %v, %s, %v one way, loss %v: use %.3f, lowest %.1f of %.0f, %.0f asks/s",
			seed, n, run.exact, run.wait, run.rate, run.burst, run.load, skew, run.oneWay, run.loss, got.use(), got.worst, float64(run.rate)*run.burst, got.calls)
		if got.worst < 0 {
			t.Errorf("seed %d: %.1f permits beyond the bound", seed, -got.worst)
		}
		if got.admitted == 0 && run.oneWay < time.Second/4 { // slower answers come after the time-out
			t.Errorf("seed %d: nothing was admitted", seed)
		}
	}
}

// While Redis is away, instances have their part by the last known number of them, and what they
// admit is charged when it is back. A lost state begins empty.
func TestFleetOutages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	const n, rate = 20, 5000
	awayFor := 1500 * time.Millisecond
	away := func(some int) func(int, time.Duration) bool {
		return func(i int, at time.Duration) bool { return i < some && at > time.Second && at < time.Second+awayFor }
	}
	flush := func(sim *fleetSim, at time.Duration) {
		if at == 1500*time.Millisecond {
			sim.client.FlushAll(context.Background())
		}
	}
	for _, c := range []struct {
		name   string
		away   func(int, time.Duration) bool
		event  func(*fleetSim, time.Duration)
		outage rules.OutagePolicy
		beyond float64 // permits that may be admitted beyond burst + rate * w
		use    float64
	}{
		{"away for all", away(n), nil, rules.OutageLocal, 0, 0.9},
		{"away for all, closed", away(n), nil, rules.OutageClosed, 0, 0.5},
		{"away for a quarter", away(n / 4), nil, rules.OutageLocal, rate / 4 * awayFor.Seconds(), 1},
		{"away for a quarter, closed", away(n / 4), nil, rules.OutageClosed, 0, 0.97},
		{"flushed", nil, flush, rules.OutageLocal, 0, 0.97},
	} {
		redis := testenv.Redis(t) // flushed by nobody else
		got := simulate(t, redis.Addr(), fleetRun{instances: n, rate: rate, burst: 0.1, load: 3, oneWay: 500 * time.Microsecond, lasts: 4 * time.Second, away: c.away, event: c.event, outage: c.outage, seed: 1})
		t.Logf("%s: %.3f of an ideal bucket, lowest %.0f", c.name, got.use(), got.worst)
		if got.worst < -c.beyond || got.use() < c.use {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// Permits held under another quota are void. The bound is that of the larger quota.
func TestFleetQuotas(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	got := simulate(t, addr, fleetRun{
		instances: 10, rate: 5000, burst: 1, load: 3, oneWay: 500 * time.Microsecond, lasts: 4 * time.Second, seed: 1,
		event: func(sim *fleetSim, at time.Duration) {
			q := *sim.quota
			switch at {
			case time.Second, 1100 * time.Millisecond, 2 * time.Second:
				q.Rate.N, q.Burst = q.Rate.N/2, q.Burst/2
			case 1050 * time.Millisecond, 3 * time.Second:
			default:
				return
			}
			for k, i := range sim.all {
				if k%2 == 0 || at >= 2*time.Second {
					i.stock.SetQuota(&q)
				}
			}
		},
	})
	t.Logf("%.3f of an ideal bucket, lowest %.0f", got.use(), got.worst)
	if got.worst < 0 || got.use() < 0.7 {
		t.Errorf("%+v", got)
	}
}

// Requests of low priority take what those of high priority leave, and never the reserve. So they
// cannot starve them, however many they are.
func TestFleetPriority(t *testing.T) {
	addr := testenv.Redis(t).Addr()
	const rate, lasts = 5000, 4 * time.Second
	for _, c := range []struct {
		load, low float64
		burst     float64
	}{{0.5, 5, 0.1}, {0.5, 5, 1}, {0, 3, 0.5}, {3, 3, 0.5}} {
		got := simulate(t, addr, fleetRun{
			instances: 10, rate: rate, burst: c.burst, load: c.load, low: c.low, skew: even, oneWay: 500 * time.Microsecond, lasts: lasts, seed: 1,
		})
		all := float64(rate)*lasts.Seconds() + rate*c.burst/2
		t.Logf("high priority %v and low priority %v of the limit, burst %v: %d of %d and %d admitted, lowest %.0f", c.load, c.low, c.burst, got.admitted, got.asked, got.low, got.worst)
		if got.worst < 0 || float64(got.admitted+got.low) < 0.97*all {
			t.Errorf("%d and %d admitted of %.0f, lowest %.0f", got.admitted, got.low, all, got.worst)
		}
		if float64(got.admitted) < 0.99*math.Min(float64(got.asked), rate*lasts.Seconds()) {
			t.Errorf("%d of %d requests of high priority admitted", got.admitted, got.asked)
		}
		if c.load == 0 && got.worst < 0.9*rate*c.burst/2 {
			t.Errorf("%.0f permits are left of a reserve of %.0f", got.worst, rate*c.burst/2)
		}
	}
}
