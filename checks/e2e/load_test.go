package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// sample is one request and what became of it.
type sample struct {
	at     time.Time // when it was due: a client that is held up hides no delay
	took   time.Duration
	status int
	err    error
}

// flow is a steady flow of one request, and its samples.
type flow struct {
	name, url string
	values    int // if not 0, url ends with one of so many numbers in turn
	perSecond int
	hot       bool // may be limited

	mu      sync.Mutex
	samples []sample
}

// maxLag is how far behind its pace a flow makes up for.
const maxLag = 200 * time.Millisecond

// begin runs flows until stop is called or the test ends.
func (f *fleet) begin(flows ...*flow) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, fl := range flows {
		running.Go(func() { fl.run(ctx, f.http) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	f.t.Cleanup(stop)
	return stop
}

// run sends the requests one after the other, at their pace, until ctx ends. One
// that is then on its way is waited for.
func (fl *flow) run(ctx context.Context, client *http.Client) {
	every := time.Second / time.Duration(fl.perSecond)
	due := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s, url := sample{at: due}, fl.url
		if fl.values > 0 {
			url += strconv.Itoa(len(fl.samples) % fl.values) // which no other goroutine writes
		}
		s.status, s.err = request(client, url)
		s.took = time.Since(due)
		fl.mu.Lock()
		fl.samples = append(fl.samples, s)
		fl.mu.Unlock()
		due = due.Add(every)
		if most := time.Now().Add(-maxLag); due.Before(most) {
			due = most // a client that makes up for all at once would make its key hot
		}
		timer.Reset(time.Until(due))
	}
}

func request(client *http.Client, url string) (status int, err error) {
	res, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}

func (fl *flow) between(from, to time.Time) []sample {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	var in []sample
	for _, s := range fl.samples {
		if !s.at.Before(from) && s.at.Before(to) {
			in = append(in, s)
		}
	}
	return in
}

// load is traffic on all instances until the test ends: phone, over its
// threshold, and terms below theirs, all at once. Beside it runs a control: the
// same flow to a server without hotparam.
type load struct {
	t       *testing.T
	flows   []*flow
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
	l := &load{t: f.t, control: &flow{name: "control", url: plain.URL, perSecond: phoneRate / len(apis)}}
	for i, a := range apis {
		l.flows = append(l.flows, &flow{
			name: fmt.Sprintf("phone at instance %d", i), url: a.search("phone"), perSecond: phoneRate / len(apis), hot: true,
		})
		for _, term := range []string{"tree", "house"} {
			l.flows = append(l.flows, &flow{
				name: fmt.Sprintf("%s at instance %d", term, i), url: a.search(term), perSecond: otherRate / len(apis),
			})
		}
	}
	f.t.Cleanup(func() {
		f.http.CloseIdleConnections()
		plain.Close()
	})
	l.stop = f.begin(append(l.flows, l.control)...)
	return l
}

// calm waits until traffic has flown undisturbed for about a second, and tells
// since when.
func (l *load) calm() time.Time {
	l.t.Helper()
	since := time.Now()
	within(l.t, patience, "80 requests of phone at one instance", func() bool {
		return len(l.flows[0].between(since, time.Now())) >= 80
	})
	return since
}

// judge ends the traffic, so that no request is still on its way, and looks at all
// from a calm time over a fault to now: none failed, no other term was ever refused,
// and since the fault none waited.
func (l *load) judge(calm, fault time.Time) {
	l.t.Helper()
	l.stop()
	now := time.Now()
	var before, during []time.Duration
	for _, fl := range l.flows {
		failed := 0
		for _, s := range fl.between(calm, now) {
			if !fl.good(s) {
				if failed++; failed <= 3 {
					l.t.Errorf("%s: status %d after %v, error %v", fl.name, s.status, s.took, s.err)
				}
			}
			if s.at.Before(fault) {
				before = append(before, s.took)
			} else {
				during = append(during, s.took)
			}
		}
		if failed > 0 {
			l.t.Errorf("%s: %d requests failed", fl.name, failed)
		}
	}
	var control []time.Duration
	for _, s := range l.control.between(fault, now) {
		control = append(control, s.took)
	}
	for _, c := range []struct {
		name     string
		quantile float64
		floor    time.Duration // below it nothing is worth telling on a busy machine
	}{{"median", 0.5, 5 * time.Millisecond}, {"p99", 0.99, 20 * time.Millisecond}} {
		was, is, beside := quantile(before, c.quantile), quantile(during, c.quantile), quantile(control, c.quantile)
		l.t.Logf("latency, %s: %v before the fault (%d requests), %v from then on (%d), %v beside it without hotparam",
			c.name, was, len(before), is, len(during), beside)
		if bound := max(3*was, 3*beside, c.floor); is > bound {
			l.t.Errorf("latency, %s: %v since the fault, want at most %v", c.name, is, bound)
		}
	}
}

// quantile is the nearest-rank quantile.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// good tells whether a sample's answer is one that its flow may have.
func (fl *flow) good(s sample) bool {
	return s.err == nil && (s.status == http.StatusOK || fl.hot && refused(s))
}

func refused(s sample) bool { return s.status == http.StatusTooManyRequests }

// mustBeGood looks at all requests: none failed, and no other term was refused.
func (l *load) mustBeGood() {
	l.t.Helper()
	for _, fl := range l.flows {
		for _, s := range fl.all() {
			if !fl.good(s) {
				l.t.Fatalf("%s: status %d after %v, error %v", fl.name, s.status, s.took, s.err)
			}
		}
	}
}

func (fl *flow) all() []sample { return fl.between(time.Time{}, time.Now().Add(time.Hour)) }
