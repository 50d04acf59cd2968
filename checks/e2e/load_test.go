package e2e

import (
	"slices"
	"testing"
	"time"
)

// load is traffic on all instances until the test ends: phone, over its threshold, and terms
// below theirs, all at once.
type load struct {
	t      *testing.T
	phones []*flow
	flows  []*flow // phones and the others
	stop   func()
}

const (
	phoneRate = 150 // per second over all instances: 1.5 × the threshold, which no instance of two reaches alone
	otherRate = 60  // of each other term: below the threshold, over the limit
)

// startLoad begins the traffic.
func (f *fleet) startLoad(apis []*api) *load {
	f.t.Helper()
	l := &load{t: f.t, phones: flowsAt(apis, "/search?q=phone", phoneRate, mayBeLimited)}
	l.flows = slices.Concat(l.phones, flowsAt(apis, "/search?q=tree", otherRate, mustPass), flowsAt(apis, "/search?q=house", otherRate, mustPass))
	f.t.Cleanup(f.http.CloseIdleConnections)
	l.stop = f.beginFlows(l.flows...)
	return l
}

// calm waits until traffic has flowed for about a second.
func (l *load) calm() {
	l.t.Helper()
	since := time.Now()
	within(l.t, patience, "80 requests of phone at one instance", func() bool {
		return len(l.phones[0].between(since, time.Now())) >= 80
	})
}

// judgeLatency compares how long requests took with how long they took before, and with a control
// at the same time.
func judgeLatency(t *testing.T, took, before []time.Duration, control []answer) {
	t.Helper()
	var beside []time.Duration
	for _, a := range control {
		beside = append(beside, a.took())
	}
	for _, c := range []struct {
		name     string
		quantile float64
		floor    time.Duration // on a busy machine, differences below it mean nothing
	}{{"median", 0.5, 5 * time.Millisecond}, {"p99", 0.99, 20 * time.Millisecond}} {
		during, earlier, plain := quantile(took, c.quantile), quantile(before, c.quantile), quantile(beside, c.quantile)
		t.Logf("latency, %s: %v (%d requests), %v before (%d), %v beside it without hotparam (%d)",
			c.name, during, len(took), earlier, len(before), plain, len(beside))
		if bound := max(3*earlier, 3*plain, c.floor); during > bound {
			t.Errorf("latency, %s: %v, want at most %v", c.name, during, bound)
		}
	}
}

// quantile returns the nearest-rank quantile.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}
