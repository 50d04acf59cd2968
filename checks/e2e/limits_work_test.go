package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const workRule = `
  - id: work
    match: {route: "GET /work"}
    limit: {concurrency: 4, scope: exact, WAIT}
`

func workRuleWith(wait string) string { return strings.Replace(workRule, "WAIT", wait, 1) }

// Three instances have a long queue each. No more requests run than there are permits, none is
// refused, and in the end all permits are returned.
func TestPermitsOfThreeInstances(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 3, workRuleWith("wait: 1m, queue: 100"))
	stop := c.hammer(8, c.urls("/work?hold=2ms")...)
	time.Sleep(time.Second)
	answers := stop()
	wellAnswered(t, answers)
	_, most := c.atWork()
	t.Logf("%d requests, at most %d of 4 at work at a time", len(answers), most)
	if n := count(answers, http.StatusOK); n != len(answers) {
		t.Errorf("%d of %d refused, though the line was never full", len(answers)-n, len(answers))
	}
	if most > 4 {
		t.Errorf("%d at work at a time, 4 may be", most)
	}
	c.idle()
}

// Redis dies under load and comes back empty. No request is refused. During the outage each
// instance has its share of the permits, and afterwards they share all of them again.
func TestPermitsWithoutRedis(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, workRuleWith("wait: 1m, queue: 100"))
	for _, w := range c.workers {
		w.guard.SetInstances(2)
	}
	stop := c.hammer(6, c.urls("/work?hold=5ms")...)
	time.Sleep(200 * time.Millisecond)
	c.redis.Kill()
	killed := time.Now()
	within(t, patience, "each instance knows", func() bool {
		return !slices.ContainsFunc(c.workers, func(w *worker) bool { return w.semaphore.Stats().Failures == 0 })
	})
	away := time.Now()
	time.Sleep(time.Until(killed.Add(500 * time.Millisecond)))
	c.redis.Restart()
	back := time.Now()
	granted := func(w *worker) uint64 { return w.semaphore.Stats().Granted }
	for _, w := range c.workers {
		before := granted(w)
		within(t, patience, "permits of Redis again", func() bool { return granted(w) > before })
	}
	again := time.Now()
	time.Sleep(300 * time.Millisecond)
	answers := stop()
	wellAnswered(t, answers)
	if n := count(answers, http.StatusOK); n != len(answers) {
		t.Errorf("%d of %d refused", len(answers)-n, len(answers))
	}
	meanwhile, of := c.busiest(settled(answers, away), back)
	then, more := c.busiest(settled(answers, again), time.Now())
	t.Logf("of %d requests without Redis at most %d at work at a time; permits of Redis %v after it was back, of %d requests then at most %d", of, meanwhile, again.Sub(back), more, then)
	if meanwhile > 4 || then > 4 {
		t.Errorf("%d at work at a time without Redis, then %d: 4 may be", meanwhile, then)
	}
	c.idle()
}

// A waiting request is refused when its wait ends, and one whose client disconnects leaves its
// place.
func TestWaitingLineOfInstances(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, workRuleWith("wait: 300ms, queue: 1"))
	holder, other := c.workers[0], c.workers[1]
	var asking sync.WaitGroup
	defer asking.Wait()
	for i := range 4 {
		asking.Go(func() { c.ask(holder.server.URL + "/work?hold=gate") })
		within(t, patience, "at work", func() bool {
			now, _ := c.atWork()
			return now == i+1
		})
	}
	if a := c.ask(other.server.URL + "/work"); a.status != http.StatusServiceUnavailable || a.retryAfter == "" || a.got.Sub(a.sent) < 300*time.Millisecond {
		t.Errorf("%+v, want 503 after 300ms", a)
	}
	longer, err := workRules(workRuleWith("wait: 1m, queue: 1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.guard.Reload(longer); err != nil {
		t.Fatal(err)
	}
	waiting := func(n int) {
		t.Helper()
		within(t, patience, "waiting", func() bool { return other.semaphore.Stats().Waiting == n })
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	asking.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, other.server.URL+"/work", http.NoBody)
		if err == nil {
			var res *http.Response
			if res, err = c.http.Do(req); err == nil {
				res.Body.Close()
				t.Errorf("%d for who hung up", res.StatusCode)
			}
		}
	})
	waiting(1)
	if a := c.ask(other.server.URL + "/work"); a.status != http.StatusServiceUnavailable {
		t.Errorf("%+v, though the line is full", a)
	}
	hangUp()
	waiting(0)
	last := make(chan answer, 1)
	asking.Go(func() { last <- c.ask(other.server.URL + "/work") })
	waiting(1)
	c.open()
	if a := <-last; a.status != http.StatusOK {
		t.Errorf("%+v, though permits came free", a)
	}
	c.idle()
}

// A process that holds permits is killed. They are free again after its lease.
func TestPermitsOfAKilledInstance(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, workRuleWith("wait: 1m"))
	kill, url := c.startWorker()
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() { c.ask(url + "/work?hold=1m") })
	}
	within(t, patience, "all permits are held", func() bool { return c.leases() == 4 })
	last := make(chan answer, 1)
	asking.Go(func() { last <- c.ask(c.workers[0].server.URL + "/work") })
	within(t, patience, "waiting", func() bool { return c.workers[0].semaphore.Stats().Waiting == 1 })
	if _, n := c.atWork(); n != 0 {
		t.Errorf("%d at work beside the 4 of the other process", n)
	}
	killed := time.Now()
	kill()
	a := <-last
	t.Logf("a permit of a killed process was free after %v, its lease is %v", a.got.Sub(killed), crashLease)
	if a.status != http.StatusOK {
		t.Errorf("%+v", a)
	}
	asking.Wait()
	c.idle()
}
