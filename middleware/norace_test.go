//go:build !race

package middleware

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hotparam/hotparam"
)

// What the request path may not do: allocate. (The race detector makes the pool
// forget, so there is nothing to measure under it.)
func TestCheckDoesNotAllocate(t *testing.T) {
	allocs := func(name string, f *fixture, req Request) {
		t.Helper()
		if n := testing.AllocsPerRun(500, func() { f.Check(req) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for _, c := range benchCases {
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", c.rule, c.by, 3600, 1)}})
		req := get(c.pattern, c.path, fmt.Sprintf(c.query, 7))
		allocs(c.name, f, req)
		members := f.keys()
		if len(members) == 0 {
			t.Fatalf("%s makes no key", c.name)
		}
		f.heat(t, members...)
		allocs(c.name+", hot", f, req)
		if f.Stats().Limited == 0 {
			t.Errorf("%s is not hot", c.name)
		}
	}
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{
		limitRule(t, "one", "*", hotparam.By{}, 1, 1000), limitRule(t, "keys", "*", byEach, 1, 400), hotRule(t, "h", "*", byAll, 0, 0),
	}})
	allocs("limits, some of them of keys", f, get("GET /s", "/s", "q=1&b=2"))
	f = newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "*", byAll, 1, 1)}})
	allocs("long", f, get("GET /s", "/s", "q="+strings.Repeat("%C3%A9", 300)))
	if n := testing.AllocsPerRun(500, func() { f.Enter(t.Context(), "job", hotparam.Param{Name: "q", Value: "1"}) }); n != 0 {
		t.Errorf("Enter: %v allocations", n)
	}
	if n := testing.AllocsPerRun(500, func() { f.IsHot("GET /s?q=1") }); n != 0 {
		t.Errorf("IsHot: %v allocations", n)
	}
}
