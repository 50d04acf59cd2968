package middleware

import (
	"testing"

	"pgregory.net/rapid"
)

// A cache of routes works like a map from method and name, and keeps the first route of both.
func TestRouteCacheIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"", "/", "GET /api/", "/a/items/{id}", "/b/items/{id}", "x", "long enough to be several words"})
		name := rapid.Custom(func(t *rapid.T) string { return part.Draw(t, "head") + part.Draw(t, "tail") })
		method := rapid.SampledFrom([]string{"", "GET", "PUT", "POST", "HEAD"})
		var c routeCache[route]
		c.init()
		want := map[[2]string]*route{}
		for range rapid.IntRange(0, 60).Draw(t, "adds") {
			m, n := method.Draw(t, "method"), name.Draw(t, "name")
			r := &route{}
			c.add(m, n, r)
			if want[[2]string{m, n}] == nil {
				want[[2]string{m, n}] = r
			}
		}
		for key, r := range want {
			if c.lookup(key[0], key[1]) != r {
				t.Fatalf("%q is not found", key)
			}
		}
		if m, n := method.Draw(t, "method"), name.Draw(t, "name")+"!"; c.lookup(m, n) != nil {
			t.Fatalf("%q %q is found", m, n)
		}
		routes := 0
		for _, of := range *c.known.Load() {
			routes += len(of)
		}
		if routes != len(want) {
			t.Fatalf("%d routes, want %d", routes, len(want))
		}
	})
}
