package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// Limits over all instances: two for a hot key, of one of which the instances hold permits, and two for
// all clients. While Redis takes too long to answer, as it may on a busy machine, nothing passes. So
// never more passes than the limits allow.
const exactRules = `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, exit: 1%, hold: 1m, cool_down: 0s}
    limit: {rate: 200/s, burst: 200, scope: exact, when_redis_is_away: closed}
  - id: files
    match: {route: "GET /files/{name}"}
    by: ["path:name"]
    hot: {rate: 100/s, exit: 1%, hold: 1m, cool_down: 0s}
    limit: {rate: 600/s, burst: 300, scope: fleet, when_redis_is_away: closed}
  - id: products
    match: {route: "GET /products/{id}"}
    by: ["path:id"]
    limit: {rate: 50/500ms, algorithm: sliding_log, scope: exact, when_redis_is_away: closed}
  - id: health
    match: {route: "GET /healthz"}
    limit: {rate: 100/500ms, algorithm: fixed_window, scope: exact, when_redis_is_away: closed}
`

// Three instances get as many requests as possible at once, and Redis loses all its data, scripts
// included. Each limit lets its permits for the elapsed time pass, and once more after the loss,
// and not noticeably less.
func TestLimitsOfThreeInstances(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), exactRules)
	f.startAggregator()
	apis := f.startAPIs(3)
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:150|c", 1)
	f.sendLines("shop.files.hot_param.GET%20/files/{name}?path%3Aname=logo:150|c", 1)
	f.awaitHot(patience, apis, phone)
	f.awaitHot(patience, apis, "files GET /files/{name}?path:name=logo")

	urls := map[string][]string{}
	var all []string
	for _, path := range []string{"/search?q=phone", "/files/logo", "/products/7", "/healthz"} {
		for i, a := range apis {
			urls[path] = append(urls[path], a.url+path)
			if path == "/files/logo" { // most of them at one instance
				urls[path] = append(urls[path], slices.Repeat([]string{a.url + path}, i)...)
			}
		}
		all = append(all, urls[path]...)
	}
	stop := f.hammer(3, all...)
	time.Sleep(1500 * time.Millisecond)
	flush := time.Now()
	f.redis.Flush()
	flushed := time.Now()
	time.Sleep(1500 * time.Millisecond)
	answers := stop()
	wellAnswered(t, answers)
	if len(since(answers, flushed)) == 0 {
		t.Fatal("nothing was asked after the loss")
	}

	window := 500 * time.Millisecond
	for path, c := range map[string]struct {
		most  func([]answer) int
		least func([]answer) int
		fresh int // permits granted again after the loss
	}{
		"/search?q=phone": {mostOfBucket(200, 200), leastOfBucket(200, 200), 200},
		"/files/logo":     {mostOfBucket(600, 300), halfOfBucket(600, 300), 300},
		"/products/7":     {mostOfWindow(50, window), leastOfWindow(50, window), 50},
		"/healthz":        {mostOfWindow(100, window), leastOfWindow(100, window), 100},
	} {
		got := only(answers, urls[path])
		passed, away := count(got, http.StatusOK), count(got, http.StatusServiceUnavailable)
		most := c.most(got) + c.fresh
		// A request that got no answer in time may have taken a permit all the same.
		least := c.least(until(got, flush)) + c.least(since(got, flushed))
		t.Logf("%s: asked %d, passed %d (%d to %d), not decided %d", path, len(got), passed, least, most, away)
		if passed > most {
			t.Errorf("%s: %d passed, at most %d may", path, passed, most)
		}
		if passed+away < least*9/10 {
			t.Errorf("%s: %d passed, though %d were asked for within the limit", path, passed, least)
		}
	}
	log := only(answers, urls["/products/7"])
	for _, part := range [][]answer{until(log, flush), since(log, flushed)} {
		if err := moreInAWindow(part, 50, window); err != nil {
			t.Error(err)
		}
	}
	for _, a := range apis {
		if s := a.state().Guard; s.Undecided != 0 || s.Panics != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// span returns the time in which all decisions were made.
func span(answers []answer) time.Duration {
	if len(answers) == 0 {
		return 0
	}
	last := slices.MaxFunc(answers, func(a, b answer) int { return a.got.Compare(b.got) })
	return last.got.Sub(answers[0].sent)
}

// mostOfBucket returns a function that returns how many requests a bucket may let pass.
func mostOfBucket(perSecond, burst int) func([]answer) int {
	return func(answers []answer) int {
		return burst + int(float64(perSecond)*span(answers).Seconds()) + 1 // clocks differ by less than it takes to earn one
	}
}

// leastOfBucket returns a function that returns how many requests a bucket must have let pass: it
// was empty at each refusal. Permits that it could not store while it was full do not count.
func leastOfBucket(perSecond, burst int) func([]answer) int {
	toFull := time.Duration(burst) * time.Second / time.Duration(perSecond)
	return func(answers []answer) int {
		refused := apart(answers, 100*time.Millisecond)
		if len(refused) == 0 {
			return 0
		}
		var earned time.Duration
		for i, a := range refused[1:] {
			if a.got.Sub(refused[i].sent) < toFull {
				earned += a.sent.Sub(refused[i].got)
			}
		}
		return burst + int(float64(perSecond)*earned.Seconds()) - 1
	}
}

// halfOfBucket returns a function that returns half of what a bucket must have let pass. Permits that
// instances hold may be unused.
func halfOfBucket(perSecond, burst int) func([]answer) int {
	least := leastOfBucket(perSecond, burst)
	return func(answers []answer) int { return least(answers) / 2 }
}

// mostOfWindow returns a function that returns how many requests a window of either kind may let
// pass.
func mostOfWindow(n int, per time.Duration) func([]answer) int {
	return func(answers []answer) int { return n * (int((span(answers)+time.Millisecond)/per) + 1) }
}

// leastOfWindow returns a function that returns how many requests a window of either kind must
// have let pass. Two refusals a whole window apart were in different windows, and both were full.
func leastOfWindow(n int, per time.Duration) func([]answer) int {
	return func(answers []answer) int { return n * len(apart(answers, per)) }
}

// apart returns refusals that were surely so far from each other.
func apart(answers []answer, by time.Duration) (refused []answer) {
	for _, a := range answers {
		if a.status == http.StatusTooManyRequests && (len(refused) == 0 || a.sent.Sub(refused[len(refused)-1].got) >= by) {
			refused = append(refused, a)
		}
	}
	return refused
}

// moreInAWindow returns an error if more than n requests surely passed within less than per.
func moreInAWindow(answers []answer, n int, per time.Duration) error {
	passed := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.status != http.StatusOK })
	for i := range passed {
		in := 0
		for _, a := range passed[i:] {
			if a.got.Sub(passed[i].sent) < per-time.Millisecond {
				in++
			}
		}
		if in > n {
			return fmt.Errorf("%d passed within %v, at most %d may", in, per, n)
		}
	}
	return nil
}
