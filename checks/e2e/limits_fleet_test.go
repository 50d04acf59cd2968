package e2e

import (
	"net/http"
	"testing"
	"time"
)

// One limit of a hot key over all instances, each of which holds some of its permits.
const fleetRules = `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 100/s, exit: 1%, hold: 1m, cool_down: 0s}
    limit: {rate: 600/s, burst: 300, scope: fleet, when_redis_is_away: closed}
`

// Three instances get as many requests as possible at once, one of them most of these. Redis
// loses all its data meanwhile. All together never let more pass than
// one bucket, but for a burst after the loss, and use most of it.
func TestFleetLimitOfThreeInstances(t *testing.T) {
	t.Parallel()
	const rate, burst = 600, 300
	f := newFleet(t, commands(t), fleetRules)
	f.startAggregator()
	apis := f.startAPIs(3)
	f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:150|c", 1)
	f.awaitHot(patience, apis, phone)
	var urls []string
	for i, a := range apis {
		for range 1 + 3*i {
			urls = append(urls, a.url+"/search?q=phone")
		}
	}
	stop := f.hammer(1, urls...)
	time.Sleep(1500 * time.Millisecond)
	flush := time.Now()
	f.redis.Flush()
	flushed := time.Now()
	time.Sleep(1500 * time.Millisecond)
	answers := stop()
	wellAnswered(t, answers)
	for name, part := range map[string][]answer{"before the loss": until(answers, flush), "after the loss": since(answers, flushed)} {
		passed := count(part, http.StatusOK)
		most, earned := mostOfBucket(rate, burst)(part), int(rate*span(part).Seconds())
		t.Logf("%s: asked %d in %v, passed %d, at most %d", name, len(part), span(part), passed, most)
		if passed > most || passed < earned/2 {
			t.Errorf("%s: passed %d of %d in %v, at most %d", name, passed, len(part), span(part), most)
		}
	}
	if passed, most := count(answers, http.StatusOK), mostOfBucket(rate, burst)(answers)+burst; passed > most {
		t.Errorf("passed %d, at most %d", passed, most)
	}
	for _, a := range apis {
		if s := a.state().Guard; s.Undecided != 0 || s.Panics != 0 {
			t.Errorf("%+v", s)
		}
	}
}
