package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// load is traffic on all instances until the test ends: phone, over its threshold, and terms
// below theirs, all at once. A control runs in parallel: the same flow to a server without
// hotparam.
type load struct {
	t       *testing.T
	phones  []*flow
	flows   []*flow // phones and the others
	control *flow
	stop    func()
}

const (
	phoneRate = 150 // per second over all instances: 1.5 × the threshold, which no instance of two reaches alone
	otherRate = 60  // of each other term: below the threshold, over the limit
)

// startLoad begins the traffic.
func (f *fleet) startLoad(apis []*api) *load {
	f.t.Helper()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }))
	l := &load{
		t: f.t, phones: flowsAt(apis, "/search?q=phone", phoneRate, mayBeLimited),
		control: &flow{name: "control", url: plain.URL, perSecond: phoneRate / len(apis)},
	}
	l.flows = slices.Concat(l.phones, flowsAt(apis, "/search?q=tree", otherRate, mustPass), flowsAt(apis, "/search?q=house", otherRate, mustPass))
	f.t.Cleanup(func() {
		f.http.CloseIdleConnections()
		plain.Close()
	})
	l.stop = f.beginFlows(append(l.flows, l.control)...)
	return l
}

// calm waits until traffic has flowed undisturbed for about a second, and returns the beginning
// of that time.
func (l *load) calm() time.Time {
	l.t.Helper()
	since := time.Now()
	within(l.t, patience, "80 requests of phone at one instance", func() bool {
		return len(l.phones[0].between(since, time.Now())) >= 80
	})
	return since
}

// checkLatency ends the traffic and waits for requests in flight. It checks all requests from a calm
// time over a fault to now: none failed, no other term was refused, and since the fault none
// waited.
func (l *load) checkLatency(calm, fault time.Time) {
	l.t.Helper()
	l.stop()
	now := time.Now()
	var before, during []time.Duration
	for _, fl := range l.flows {
		failed := 0
		for _, a := range fl.between(calm, now) {
			if !fl.good(a) {
				if failed++; failed <= 3 {
					l.t.Errorf("%s: status %d after %v, error %v", fl.name, a.status, a.took(), a.err)
				}
			}
			if a.due.Before(fault) {
				before = append(before, a.took())
			} else {
				during = append(during, a.took())
			}
		}
		if failed > 0 {
			l.t.Errorf("%s: %d requests failed", fl.name, failed)
		}
	}
	judgeLatency(l.t, during, before, l.control.between(fault, now))
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
