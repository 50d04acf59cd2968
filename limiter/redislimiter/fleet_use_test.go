//go:build real && !race

package redislimiter_test

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Permits are used as those of one bucket, by all instances alike, with few calls.
func TestFleetUse(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	addr := testenv.Redis(t).Addr()
	for _, c := range []struct {
		name  string
		n     int
		rate  int64
		burst float64
		load  float64
		skew  func(int, time.Duration) float64
		use   float64
		wait  time.Duration
	}{
		{"all at ease", 20, 5000, 0.1, 0.8, even, 0.99, 0},
		{"even", 20, 5000, 0.1, 3, even, 0.99, 0},
		{"a crowd", 20, 20_000, 1, 20, zipf(20, 1), 0.99, 0},
		{"Zipf 1", 20, 5000, 0.1, 1.2, zipf(20, 1), 0.99, 0},
		{"Zipf 2", 20, 5000, 1, 3, zipf(20, 2), 0.99, 0},
		{"on one", 20, 1000, 1, 3, onOne(20), 0.98, 0},
		{"moving", 20, 5000, 0.1, 3, moving(20, 1), 0.98, 0},
		{"on and off", 20, 5000, 0.1, 3, onOff, 0.92, 0},
		{"waiting", 20, 5000, 0.1, 1.2, zipf(20, 1), 0.99, time.Second},
		{"waiting, far beyond", 20, 5000, 0.1, 3, even, 0.99, 300 * time.Millisecond},
		{"many instances", 200, 20_000, 1, 3, zipf(200, 1), 0.95, 0},
	} {
		const lasts = 12 * time.Second
		got := simulate(t, addr, fleetRun{instances: c.n, rate: c.rate, burst: c.burst, load: c.load, skew: c.skew, wait: c.wait, oneWay: 500 * time.Microsecond, lasts: lasts, seed: 1})
		requests := float64(got.asked) / lasts.Seconds()
		t.Logf("%s: %.3f of an ideal bucket, lowest %.0f, worst instance %.2f of the mean, %.0f asks/s of %.0f requests/s",
			c.name, got.use(), got.worst, got.fairness, got.calls, requests)
		if got.worst < 0 || got.use() < c.use || got.fairness < 0.5 || got.calls > float64(2*c.n)/0.02 || got.calls > requests/4 {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
