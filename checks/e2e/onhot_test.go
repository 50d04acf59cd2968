package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotkeys"
)

// The crowd of [TestCrowdFromMemory], and the others beside it.
const (
	memoryCache  = 500 * time.Millisecond
	crowdFactor  = 20 // the crowd's rate, as a multiple of the limit
	crowdAtEach  = 50 // requests per second to each instance
	othersAtEach = 5
	otherTerms   = 97
)

// A crowd asks all instances for one target, at 20 times the limit of its key. It is answered from
// memory: the handler runs no more often than the times of the answers allow, no one is refused, and
// each answer is that of its request. The answers come about as fast as those of a server that does
// nothing, and the crowd does not delay the others.
func TestCrowdFromMemory(t *testing.T) {
	bin := quickCommands(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin.api = self
	instances, lasts := 4, 4*time.Second
	if atLength() {
		instances, lasts = 20, 20*time.Second
	}
	f := newFleet(t, bin, fmt.Sprintf(`
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, exit: 80%%, hold: 1s, cool_down: 0s}
    limit: {rate: %d/s, scope: share}
    on_hot: {cache: %v, stale: 2s}
`, instances*crowdAtEach/crowdFactor, memoryCache))
	f.variables = []string{countingVariable + "=1", "GOMAXPROCS=2"}
	f.startAggregator()
	apis := f.startAPIs(instances)
	within(t, patience, "each instance knows all others", func() bool {
		return all(apis, func(in instance) bool { return in.Members.Count == instances })
	})
	idle := &flow{name: "idle", url: f.plainServer(), perSecond: 100}
	crowd, others := new(visits), new(visits)
	stop := beside(t, append(others.sendTo(apis, othersAtEach, func(n int) string { return "term" + strconv.Itoa(n%otherTerms) }),
		func(ctx context.Context) { idle.run(ctx, f.http) })...)
	time.Sleep(time.Second) // connections are open
	calm := time.Now()
	time.Sleep(lasts)
	begun := time.Now()
	leave := beside(t, crowd.sendTo(apis, crowdAtEach, func(int) string { return "phone" })...)
	f.awaitHot(patience, apis, phone)
	time.Sleep(2 * time.Second) // the limit's burst is used up, and each instance has an answer
	from := time.Now()
	before := f.countRuns(apis)
	time.Sleep(lasts)
	after := f.countRuns(apis)
	to := time.Now()
	leave()
	stop()

	served := crowd.between(from, to)
	runs, most, refreshes := 0, 0, int64(0)
	for i := range apis {
		b, a := before[i], after[i]
		x, y := b.OnHot["search-terms"], a.OnHot["search-terms"]
		alone := y.Requests["alone"] - x.Requests["alone"] // joined requests that waited too long for a busy machine
		runs += int(a.Runs - b.Runs)
		flushes := a.Invalidator.Flushes - b.Invalidator.Flushes // after a read that failed, there
		most += int(a.got.Sub(b.sent)/memoryCache) + 1 + int(alone) + int(flushes)
		refreshes += y.Refreshes - x.Refreshes
	}
	t.Logf("%d instances: %d requests of the crowd in %v, %.0f/s at a limit of %d/s; %d runs of the handler, %d of them refreshes, at most %d",
		instances, len(served), to.Sub(from).Round(time.Millisecond), float64(len(served))/to.Sub(from).Seconds(), instances*crowdAtEach/crowdFactor, runs, refreshes, most)
	if runs > most || runs < instances*int(lasts/(memoryCache+2*time.Second)) {
		t.Errorf("%d runs of the handler, at most %d", runs, most)
	}
	mustAnswer(t, "the crowd", served)
	mustAnswer(t, "others without the crowd", others.between(calm, begun))
	mustAnswer(t, "others beside the crowd", others.between(begun, to))

	beside := idle.between(from, to)
	t.Logf("the crowd's latency: its p99 is that of an idle server %+.1f ms", float64(quantile(tookAll(served), 0.99)-quantile(tookAll(beside), 0.99))/float64(time.Millisecond))
	judgeLatency(t, tookAll(served), nil, beside)
	t.Log("the others' latency")
	judgeLatency(t, tookAll(others.between(from, to)), tookAll(others.between(calm, begun)), beside)
}

// visits are searches and their answers.
type visits struct{ flow }

// sendTo returns functions that send searches to the instances, each at this rate. term returns the
// term of the n-th search.
func (v *visits) sendTo(apis []*api, perSecond int, term func(n int) string) (work []func(context.Context)) {
	for i, a := range apis {
		work = append(work, func(ctx context.Context) {
			begin := time.Now().Add(time.Second / time.Duration(perSecond) * time.Duration(i) / time.Duration(len(apis))) // or all would come at once
			keepPace(ctx, perSecond, begin, func(n int, due time.Time) {
				got := a.visit(term(n*len(apis) + i))
				got.due = due
				v.mu.Lock()
				defer v.mu.Unlock()
				v.answers = append(v.answers, got)
			})
		})
	}
	return work
}

// visit is ask for a search whose results must be those of its term.
func (a *api) visit(q string) answer {
	got := answer{url: a.search(q), sent: time.Now()}
	res, err := a.f.http.Get(got.url)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		got.status = res.StatusCode
		if err == nil && got.status == http.StatusOK && string(body) != resultsFor(q) {
			err = fmt.Errorf("got %q, want %q", body, resultsFor(q))
		}
	}
	got.got, got.err = time.Now(), err
	return got
}

// runCount is what an instance has counted, at some instant between sent and got.
type runCount struct {
	sent, got time.Time
	Runs      int64 // of the handler, for the crowd

	OnHot       map[string]hotparam.OnHotStats
	Invalidator hotkeys.InvalidatorStats
}

func (f *fleet) countRuns(apis []*api) (counts []runCount) {
	f.t.Helper()
	for _, a := range apis {
		c := runCount{sent: time.Now()}
		if _, body := f.get(a.url + "/debug/hot"); json.Unmarshal([]byte(body), &c) != nil {
			f.t.Fatalf("not the state of an instance: %q", body)
		}
		c.got = time.Now()
		counts = append(counts, c)
	}
	return counts
}

// mustAnswer checks that all requests were answered, rightly, and none was refused.
func mustAnswer(t *testing.T, who string, answers []answer) {
	t.Helper()
	if len(answers) == 0 {
		t.Errorf("%s: no answers", who)
	}
	wrong := 0
	for _, a := range answers {
		if a.err != nil || a.status != http.StatusOK {
			if wrong++; wrong <= 3 {
				t.Errorf("%s: %s: status %d after %v, error %v", who, a.url, a.status, a.took(), a.err)
			}
		}
	}
	t.Logf("%s: %d answers, %d of them refused, failed or wrong", who, len(answers), wrong)
}

func tookAll(answers []answer) (all []time.Duration) {
	for _, a := range answers {
		all = append(all, a.took())
	}
	return all
}
