package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// answer is the outcome of a request. It was counted or limited at some instant between sent and
// got.
type answer struct {
	url        string
	due        time.Time // a client that is held up hides no delay
	sent, got  time.Time
	status     int
	retryAfter string
	err        error
}

// took returns the time from when the request was due to its answer.
func (a *answer) took() time.Duration { return a.got.Sub(a.due) }

func (a answer) refused() bool { return a.status == http.StatusTooManyRequests }

// ask sends a request, which is due now.
func ask(client *http.Client, url string) answer {
	a := answer{url: url, sent: time.Now()}
	a.due = a.sent
	res, err := client.Get(url)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		a.status, a.retryAfter = res.StatusCode, res.Header.Get("Retry-After")
	}
	a.got, a.err = time.Now(), err
	return a
}

func (f *fleet) ask(url string) answer { return ask(f.http, url) }

// beside runs functions in parallel with the test, until stop is called or the test ends.
func beside(t *testing.T, work ...func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, do := range work {
		running.Go(func() { do(ctx) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// maxLag is the longest delay that a client makes up for. Sending all delayed requests at once
// would change which keys are hot.
const maxLag = 200 * time.Millisecond

// keepPace calls do again and again, each time when the call is due, until ctx ends.
func keepPace(ctx context.Context, perSecond int, due time.Time, do func(n int, due time.Time)) {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		do(n, due)
		due = due.Add(time.Second / time.Duration(perSecond))
		if oldest := time.Now().Add(-maxLag); due.Before(oldest) {
			due = oldest
		}
		timer.Reset(time.Until(due))
	}
}

// flow is a steady flow of one request, with its answers.
type flow struct {
	name, url string
	values    int // if not 0, url ends with one of so many numbers, in rotation
	perSecond int
	hot       bool // may be limited

	mu      sync.Mutex
	answers []answer
}

const mayBeLimited, mustPass = true, false

// flowsAt returns a flow of one request to each instance. All together have the rate.
func flowsAt(apis []*api, path string, perSecond int, hot bool) (flows []*flow) {
	for i, a := range apis {
		flows = append(flows, &flow{name: fmt.Sprintf("%s at instance %d", path, i), url: a.url + path, perSecond: perSecond / len(apis), hot: hot})
	}
	return flows
}

// beginFlows runs flows until stop is called or the test ends.
func (f *fleet) beginFlows(flows ...*flow) (stop func()) {
	var work []func(context.Context)
	for _, fl := range flows {
		work = append(work, func(ctx context.Context) { fl.run(ctx, f.http) })
	}
	return beside(f.t, work...)
}

// run sends the requests until ctx ends. It waits for a request in flight.
func (fl *flow) run(ctx context.Context, client *http.Client) {
	keepPace(ctx, fl.perSecond, time.Now(), func(n int, due time.Time) {
		url := fl.url
		if fl.values > 0 {
			url += strconv.Itoa(n % fl.values)
		}
		a := ask(client, url)
		a.due = due
		fl.mu.Lock()
		defer fl.mu.Unlock()
		fl.answers = append(fl.answers, a)
	})
}

// between returns the answers to requests that were due in [from, to).
func (fl *flow) between(from, to time.Time) (in []answer) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	for _, a := range fl.answers {
		if !a.due.Before(from) && a.due.Before(to) {
			in = append(in, a)
		}
	}
	return in
}

func (fl *flow) all() []answer { return fl.between(time.Time{}, time.Now().Add(time.Hour)) }

// good reports whether the flow may get such an answer.
func (fl *flow) good(a answer) bool {
	return a.err == nil && (a.status == http.StatusOK || fl.hot && a.refused())
}

// times holds the times of events that are known from one instant to another: the earliest and the
// latest of each, in order.
type times[T ~int64] struct{ firsts, lasts []T }

func (x *times[T]) add(first, last T) {
	x.firsts, x.lasts = append(x.firsts, first), append(x.lasts, last)
}

func (x *times[T]) sort() {
	slices.Sort(x.firsts)
	slices.Sort(x.lasts)
}

// in returns how many events were surely in [from, to), and how many may have been.
func (x *times[T]) in(from, to T) (least, most int64) {
	return max(0, below(x.lasts, to)-below(x.firsts, from)), below(x.firsts, to) - below(x.lasts, from)
}

func below[T ~int64](sorted []T, bound T) int64 {
	n, _ := slices.BinarySearch(sorted, bound)
	return int64(n)
}

// mustBeGood checks that no request failed, and none was refused that may not be.
func mustBeGood(t *testing.T, flows []*flow) {
	t.Helper()
	for _, fl := range flows {
		for _, a := range fl.all() {
			if !fl.good(a) {
				t.Fatalf("%s: status %d after %v, error %v", fl.name, a.status, a.took(), a.err)
			}
		}
	}
}
