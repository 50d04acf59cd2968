package adaptive

import (
	"math"
	"testing"
	"time"
)

// Each case is one round, with a base of 10 ms and a tolerance of 1.5. It checks the limit, the
// base, and the search for the base.
func TestAdaptiveLimit(t *testing.T) {
	const ms = float64(time.Millisecond)
	none := math.NaN()
	for _, tc := range []struct {
		what    string
		state   estimator // min 4, max 200; limit 100, base 10 ms by default
		round   round     // a round of one second
		latency float64   // ms
		denied  bool
		cpu     float64
		limit   float64 // wanted
		base    float64 // ms
		probe   bool
	}{
		{"not met: nothing is changed", estimator{}, round{n: 6000, peak: 99}, 10, false, none, 100, 10, false},
		{"met, no queue: what it holds is more", estimator{}, round{n: 8000, peak: 100}, 10, false, none, 130, 10, false},
		{"met, no queue: what it holds is less", estimator{}, round{n: 2000, peak: 100}, 10, false, none, 110, 10, false},
		{"denied counts as met", estimator{}, round{n: 2000, peak: 70}, 10, true, none, 110, 10, false},
		{"twice at most", estimator{limit: 49}, round{n: 9000, peak: 49}, 10, false, none, 98, 10, false},
		{"to the maximum", estimator{limit: 144}, round{n: 14_000, peak: 150}, 10, false, none, 200, 10, false},
		{"a queue", estimator{}, round{n: 4000, peak: 100}, 25, true, none, 70, 10, false},
		{"a queue, not met", estimator{}, round{n: 4000, peak: 80}, 16, false, none, 71.875, 10.3125, false},
		{"a queue of few", estimator{}, round{n: 1000, peak: 100}, 25, true, none, 110, 10, false},
		{"to a half at most", estimator{}, round{n: 1000, peak: 100}, 90, true, none, 50, 10, false},
		{"to the minimum", estimator{limit: 4.5}, round{n: 10, peak: 4}, 450, true, none, 4, 10, false},

		{"the first round", estimator{base: -1}, round{n: 4000, peak: 100}, 25, true, none, 160, 25, false},
		{"faster than ever", estimator{}, round{n: 6000, peak: 90}, 6, false, none, 100, 9, false},
		{"slower, and few requests", estimator{}, round{n: 1000, peak: 50}, 14, false, none, 100, 11, false},
		{"slower, and not so few", estimator{}, round{n: 4000, peak: 60}, 14, false, none, 100, 10.25, false},

		{"the base is old", estimator{age: probeEvery}, round{n: 4000, peak: 100}, 25, true, none, 70, 10, true},
		{"the base is old, but there is no queue", estimator{age: probeEvery}, round{n: 8000, peak: 100}, 10, true, none, 130, 10, false},
		{"the rate does not follow", estimator{probe: true, cut: true, full: throughput{4000 / 1e9, 140}},
			round{n: 4000, peak: 100}, 25, true, none, 70, 10, true},
		{"the base was too high", estimator{base: 30, probe: true, cut: true, full: throughput{4000 / 1e9, 140}},
			round{n: 4000, peak: 100}, 25, true, none, 70, 25, true},
		{"the rate follows", estimator{probe: true, cut: true, full: throughput{4000 / 1e9, 140}},
			round{n: 3000, peak: 100}, 25, true, none, 122.5, 25, false},
		{"the rate follows, after one cut", estimator{probe: true, cut: true, full: throughput{4000 / 1e9, 110}},
			round{n: 3000, peak: 100}, 25, true, none, 53, 10, true},
		{"a cut goes too deep", estimator{cut: true, full: throughput{8000 / 1e9, 140}},
			round{n: 4000, peak: 100}, 25, true, none, 70, 10, true},
		{"the load fell by itself", estimator{full: throughput{8000 / 1e9, 140}}, round{n: 4000, peak: 100}, 25, true, none, 70, 10, false},
		{"there is no less", estimator{limit: 4, probe: true, cut: true, full: throughput{100 / 1e9, 6}},
			round{n: 100, peak: 4}, 40, true, none, 4, 40, false},
		{"the load is gone", estimator{probe: true, cut: true}, round{n: 1000, peak: 60}, 16, false, none, 100, 10.3125, false},

		{"one of a hundred dropped", estimator{}, round{n: 990, dropped: 10, peak: 100}, 10, true, none, 90, 10, false},
		{"fewer are chance", estimator{}, round{n: 999, dropped: 1, peak: 100}, 10, true, none, 110, 10, false},
		{"all dropped", estimator{}, round{dropped: 30, peak: 100}, 0, true, none, 90, 10, false},
		{"wary", estimator{wary: 3}, round{n: 8000, peak: 100}, 10, true, none, 101, 10, false},
		{"busy", estimator{}, round{n: 8000, peak: 100}, 10, true, 1, 64, 10, false},
		{"not too busy", estimator{}, round{n: 8000, peak: 100}, 10, true, 0.8, 130, 10, false},
	} {
		a := tc.state
		a.min, a.max, a.tolerance, a.cpuTarget, a.round = 4, 200, 1.5, 0.8, tc.round
		if a.limit == 0 {
			a.limit = 100
		}
		switch {
		case a.base == 0:
			a.base = 10 * ms
		case a.base < 0:
			a.base = 0
		default:
			a.base *= ms
		}
		a.round.sum = float64(a.round.n) * tc.latency * ms
		a.update(time.Second, tc.denied, tc.cpu)
		if math.Abs(a.limit-tc.limit) > 1e-6 || math.Abs(a.base/ms-tc.base) > 1e-6 || a.probe != tc.probe {
			t.Errorf("%s: limit %v, base %v ms, probe %v; want %v, %v ms, %v", tc.what, a.limit, a.base/ms, a.probe, tc.limit, tc.base, tc.probe)
		}
	}
}

// A server whose throughput has halved answers no faster with fewer requests. Its former throughput
// does not mislead the search.
func TestAdaptiveLimitHalved(t *testing.T) {
	const ms = float64(time.Millisecond)
	a := estimator{min: 4, max: 200, tolerance: 1.5, limit: 100, base: 10 * ms, cut: true, full: throughput{8000 / 1e9, 140}}
	for i, latency := range []float64{25, 17.5} {
		a.round.n, a.round.sum = 4000, 4000*latency*ms
		a.update(time.Duration(i+1)*time.Second, true, 0)
		if !a.probe || a.base != 10*ms {
			t.Fatalf("after %v ms: base %v ms, probe %v", latency, a.base/ms, a.probe)
		}
	}
}

// The length of a round.
func TestAdaptiveLimitRounds(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		what    string
		answers int
		every   time.Duration
		latency time.Duration
		want    time.Duration // end of the first round; 0 if none is complete
	}{
		{"as long as the window", 100, 5 * ms, 5 * ms, 250 * ms},
		{"as many as it takes", 100, 50 * ms, 5 * ms, 1500 * ms},
		{"three latencies", 100, 10 * ms, 200 * ms, 600 * ms},
		{"too few for too long", 40, time.Second, 5 * ms, 0},
		{"dropped ones count", -100, 10 * ms, 5 * ms, 300 * ms},
	} {
		a := estimator{window: 250 * ms}
		outcome := Success
		if tc.answers < 0 {
			outcome, tc.answers = Dropped, -tc.answers
		}
		var complete time.Duration
		for i := range tc.answers {
			now := time.Duration(i+1) * tc.every
			if a.add(now-tc.latency, now, 1, outcome) {
				complete = now
				break
			}
		}
		if complete != tc.want {
			t.Errorf("%s: complete after %v, want %v", tc.what, complete, tc.want)
		}
	}
	a := estimator{window: 250 * ms, round: round{start: time.Hour, n: 29}}
	if a.add(0, time.Minute, 1, Success) || a.round.start != time.Minute || a.round.n != 0 {
		t.Errorf("a clock that goes back: %+v", a.round)
	}
}
