package middleware

import (
	"testing"

	"pgregory.net/rapid"
)

// A table of routes works like a map from method and name, whatever the names have in common.
func TestRouteTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"", "/", "GET /api/", "/a/items/{id}", "/b/items/{id}", "x", "long enough to be several words"})
		name := rapid.Custom(func(t *rapid.T) string { return part.Draw(t, "head") + part.Draw(t, "tail") })
		method := rapid.SampledFrom([]string{"", "GET", "PUT", "POST", "HEAD"})
		var c routeCache
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
		names := map[string]bool{}
		for key, r := range want {
			names[key[1]] = true
			if c.lookup(key[0], key[1]) != r {
				t.Fatalf("%q is not found", key)
			}
		}
		if m, n := method.Draw(t, "method"), name.Draw(t, "name")+"!"; c.lookup(m, n) != nil {
			t.Fatalf("%q %q is found", m, n)
		}
		known := c.known.Load()
		if known.routes != len(want) || known.names != len(names) || 2*known.routes > len(known.slots) && known.routes > 0 {
			t.Fatalf("%d routes of %d names in %d slots, want %d of %d", known.routes, known.names, len(known.slots), len(want), len(names))
		}
	})
}
