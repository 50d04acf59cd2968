package auth

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// A gateway with a cache asks in front of it and behind it. Only the first counts, and for a key that
// is hot only the second takes tokens.
func TestSteps(t *testing.T) {
	t.Parallel()
	f := open(t, `
  - {id: q, match: {route: "/search"}, by: [q], hot: 1000000/s, limit: {rate: 1/1h, burst: 1}, on_hot: {cache: 1s}}
  - {id: each, match: {route: "/search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
`, gateway.DoorConfig{})
	var hot []published.Hot
	for _, method := range []string{"GET", "POST"} {
		hot = append(hot, published.Hot{
			Key: rules.Key{Rule: "q", Text: method + " /search?q=hot"}, Until: time.Now().Add(time.Hour), Limit: rules.Rate{N: 1, Per: time.Hour}, Burst: 1,
		})
	}
	f.Guard.Guard().HotSet().Update("1", published.Change{Hot: hot})
	ask := func(endpoint, method, value string) (passes, hot bool) {
		t.Helper()
		r := f.send("GET "+endpoint, "X-Original-Method: "+method, "X-Original-URI: /search?q="+value, "X-Forwarded-Method: "+method, "X-Forwarded-Uri: /search?q="+value)
		return r.status < 400, r.header.Get(middleware.HotHeader) == "1"
	}
	for _, x := range []struct {
		endpoint, method, value string
		passes, hot             bool
	}{
		{"/nginx/count", "GET", "hot", true, true},
		{"/nginx/count", "GET", "hot", true, true},
		{"/original/count", "GET", "hot", true, true},
		{"/forwarded/count", "GET", "hot", true, true},
		{"/nginx/limit", "GET", "hot", true, false},
		{"/nginx/limit", "GET", "hot", false, false},
		{"/original/limit", "GET", "hot", false, false},
		{"/forwarded/limit", "GET", "hot", false, false},
		{"/nginx", "GET", "hot", false, false},
		{"/nginx/count", "GET", "hot", true, true},
		// No cache answers a POST.
		{"/nginx/count", "POST", "hot", true, false},
		{"/nginx/count", "POST", "hot", false, false},
		{"/nginx/count", "GET", "cold", true, false},
		{"/nginx/count", "GET", "cold", false, false},
		{"/nginx?step=count", "GET", "hot", false, false},
	} {
		if passes, hot := ask(x.endpoint, x.method, x.value); passes != x.passes || hot != x.hot {
			t.Errorf("%s of %s %s: passes %v, hot %v, want %v, %v", x.endpoint, x.method, x.value, passes, hot, x.passes, x.hot)
		}
	}
	// A client chooses no step.
	if r := f.ask(Nginx, "GET", "/search?q=hot", "", "X-Hotparam-Step: count", "X-Hotparam-Hot: 1"); r.status != http.StatusForbidden {
		t.Errorf("a client's headers: %+v", r)
	}
	for _, path := range []string{"/envoy/count", "/nginx/other", "/nginx/count/", "/count"} {
		if r := f.send("GET "+path, "X-Original-Method: GET", "X-Original-URI: /search?q=hot"); r.header.Get(middleware.HotHeader) != "" {
			t.Errorf("%s has a step", path)
		}
	}
	if counted := f.Guard.Counted(t)["GET%20/search?q=hot"]; counted != 8 {
		t.Errorf("counted %d times, want 8", counted)
	}
	// Twelve requests were decided, one of them by the cache.
	decided, shared := int64(0), int64(0)
	for _, r := range f.Guard.Guard().RuleStats() {
		shared += r.Decisions["shared"]
		for _, n := range r.Decisions {
			decided += n
		}
	}
	if decided != 12 || shared != 1 {
		t.Errorf("%d decisions, %d of them by the cache, want 12 and 1", decided, shared)
	}
}

// The paths of the steps belong to their endpoint.
func TestStepPaths(t *testing.T) {
	t.Parallel()
	f := open(t, oneEach, gateway.DoorConfig{}, Endpoint{"/", Original}, Endpoint{"/other", Nginx}, Endpoint{"/other/of/limit", Envoy})
	for path, status := range map[string]int{"/": 200, "/count": 200, "/limit": 200, "/other/count": 204, "/other/of": 404, "//count": 404} {
		if r := f.send("GET "+path, "X-Original-Method: GET", "X-Original-URI: /"); r.status != status {
			t.Errorf("%s: %d, want %d", path, r.status, status)
		}
	}
	for _, endpoints := range [][]Endpoint{
		{{"/a", Original}, {"/a/count", Nginx}},
		{{"/a/limit", Envoy}, {"/a", Original}},
		{{"/", Original}, {"/limit", Forwarded}},
	} {
		if _, err := New(gateway.DoorConfig{Decider: f.Decider}, endpoints); err == nil || !strings.Contains(err.Error(), "has the same path") {
			t.Errorf("%v: %v", endpoints, err)
		}
	}
}
