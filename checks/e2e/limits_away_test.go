package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// One limit for each policy while Redis is unavailable. The rates are per hour, so no permit
// comes back during a test.
const awayRules = `
  - id: search
    match: {route: "GET /search"}
    by: [q]
    limit: {rate: 30/1h, burst: 30, scope: exact, when_redis_is_away: local}
  - id: products
    match: {route: "GET /products/{id}"}
    by: ["path:id"]
    limit: {rate: 30/1h, burst: 30, scope: exact, when_redis_is_away: open}
  - id: health
    match: {route: "GET /healthz"}
    by: [k]
    limit: {rate: 30/1h, burst: 30, scope: exact, when_redis_is_away: closed}
`

// slow is a duration that no request reaches if nothing waits for Redis.
const slow = 25 * time.Millisecond

// Redis hangs, and later dies, under load. No request fails, and each limit follows its policy.
// After Redis is back all limits are exact again, and it is charged with the permits that were
// granted without it.
func TestRedisIsAwayFromExactLimits(t *testing.T) {
	t.Parallel()
	f := newFleet(t, quickCommands(t), awayRules)
	apis := f.startAPIs(3)
	within(t, patience, "each instance knows of three", func() bool {
		return all(apis, func(in instance) bool { return in.Members.Count == 3 })
	})
	for _, fault := range []struct {
		name        string
		begin, over func()
	}{
		{"hangs", f.redis.Pause, f.redis.Resume},
		{"dies", f.redis.Kill, f.redis.Restart},
	} {
		f.redisIsAway(apis, fault.name, fault.begin, fault.over)
	}
	for _, a := range apis {
		if s := a.state().Guard; s.Undecided != 0 || s.Panics != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// retries allow for a machine so busy that Redis seems to be unavailable: a call that is too late
// is decided by the instance's own share.
const retries = 6

func (f *fleet) redisIsAway(apis []*api, name string, begin, over func()) {
	const workers = 4
	t := f.t
	t.Helper()
	f.exactAgain(apis, name+"-before", patience)
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }))
	defer plain.Close()
	urls := []string{plain.URL}
	for _, a := range apis {
		urls = append(urls, a.search("load-"+name), a.url+"/products/load-"+name, a.url+"/healthz?k=load-"+name)
	}
	stop := f.hammer(workers, urls...)
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	begin()
	within(t, patience, "each instance knows", func() bool {
		return !slices.ContainsFunc(apis, func(a *api) bool { return f.ask(a.url+"/healthz?k=load-"+name).status != http.StatusServiceUnavailable })
	})
	known := time.Now()

	var parts []int
	for _, a := range apis {
		parts = append(parts, 30/a.state().Members.Count)
	}
	for try := range retries {
		if passed, _ := f.askAll(apis, 15, fmt.Sprintf("/search?q=away-%s-%d", name, try)); !slices.Equal(passed, parts) {
			t.Errorf("local: %d passed, want the parts of 30: %d", passed, parts)
		}
	}
	if passed, _ := f.askAll(apis, 40, "/products/away-"+name); !slices.Equal(passed, []int{40, 40, 40}) {
		t.Errorf("open: %d passed, want all 40", passed)
	}
	if passed, _ := f.askAll(apis, 15, "/healthz?k=away-"+name); !slices.Equal(passed, []int{0, 0, 0}) {
		t.Errorf("closed: %d passed, want none", passed)
	}
	time.Sleep(time.Until(begun.Add(time.Second)))
	ended := time.Now()
	over()
	back := time.Now()
	f.exactAgain(apis, name+"-after", patience)
	took := time.Since(back)
	// Redis is charged with the permits granted without it, so none of them can be granted again.
	var again []int
	for try := range retries {
		_, sum := f.askAll(apis, 15, fmt.Sprintf("/search?q=away-%s-%d", name, try))
		if again = append(again, sum); sum == 0 {
			break
		}
		time.Sleep(300 * time.Millisecond)
	}
	answers := stop()
	t.Logf("Redis %s: known after %v, exact again %v after Redis was back (want 3s on a calm machine); of each 45 that were decided on without Redis %d passed again", name, known.Sub(begun), took, again)
	if !slices.Contains(again, 0) {
		t.Errorf("%d passed, want none", again)
	}

	wellAnswered(t, answers)
	meanwhile := until(since(answers, begun), ended)
	control := only(meanwhile, urls[:1])
	own := only(meanwhile, urls[1:])
	held := heldUp(own)
	t.Logf("%d of %d requests in %v without Redis took over %v (%d were on their way when it went); of %d that nobody limits %d",
		held, len(own), ended.Sub(begun), slow, workers*(len(urls)-1), len(control), heldUp(control))
	// Each outage costs one timeout. If it cost every request one, nearly all would be delayed.
	// Delays by a busy machine show in the control, too.
	if limit := workers*(len(urls)-1) + len(own)/4 + len(own)*heldUp(control)/max(1, len(control)); held > limit {
		t.Errorf("%d of %d requests were held up, though Redis was known to be away", held, len(own))
	}
	for _, a := range until(since(own, known), ended) {
		switch {
		case strings.Contains(a.url, "/products/") && a.status != http.StatusOK:
			t.Fatalf("open: %d", a.status)
		case strings.Contains(a.url, "/healthz") && a.status != http.StatusServiceUnavailable:
			t.Fatalf("closed: %d", a.status)
		case strings.Contains(a.url, "/search") && a.status == http.StatusServiceUnavailable:
			t.Fatalf("local: %d", a.status)
		}
	}
}

// exactAgain waits until, of each limit, 30 of 45 requests about something new pass, whatever the
// instance.
func (f *fleet) exactAgain(apis []*api, name string, limit time.Duration) {
	f.t.Helper()
	try := 0
	paths := []string{"/search?q=", "/products/", "/healthz?k="}
	within(f.t, limit, "all limits are exact", func() bool {
		try++
		paths = slices.DeleteFunc(paths, func(path string) bool {
			_, sum := f.askAll(apis, 15, fmt.Sprintf("%s%s-%d", path, name, try))
			return sum == 30
		})
		return len(paths) == 0
	})
}

func heldUp(answers []answer) (n int) {
	for _, a := range answers {
		if a.got.Sub(a.sent) > slow {
			n++
		}
	}
	return n
}
