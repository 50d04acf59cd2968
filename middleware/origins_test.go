package middleware

import (
	"testing"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

// A request on the fast path is sampled like any other, whatever the order of the callers.
func TestOriginsOfTheShortWay(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byAll, 3600, 1)}})
	const n = 32_000
	for _, q := range []string{"1", "2", "3"} {
		f.heat(t, "r GET /s?q="+q)
		req := ofQ(q)
		for i := range n {
			req.Caller = []string{"often", "rare", "often", "often"}[i%4]
			f.Check(req)
		}
		got := make(map[string]int64)
		f.yieldOrigins(func(o collector.KeyOrigin) bool {
			got[string(o.Kind)+" "+string(o.Name)] += o.N
			return true
		})
		if often, rare := got["c often"], got["c rare"]; often < n*65/100 || often > n*85/100 || rare < n*15/100 || rare > n*35/100 {
			t.Errorf("three fourths of %d requests are told to be %d, and the others %d", n, often, rare)
		}
	}
}
