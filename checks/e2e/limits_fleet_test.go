package e2e

import (
	"testing"
	"time"
)

// What all instances admit is listed and measured beside the limit. If they do not hold to it,
// here since their files have another scope than the aggregator's, the metric of the alert rises
// above 1.
func TestAdmittedByAllInstances(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scope    string // of the instances' limits
		exceeded bool
	}{"held": {"fleet", false}, "exceeded": {"instance", true}} {
		t.Run(name, func(t *testing.T) {
			rules := func(scope string) string {
				return `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: {rate: 50/s, exit: 1%, hold: 1m, cool_down: 0s}
    limit: {rate: 100/s, burst: 50, scope: ` + scope + `}
`
			}
			f := newFleet(t, commands(t), rules("fleet"))
			d := f.startAggregator()
			f.rules = rules(c.scope)
			apis := f.startAPIs(3)
			f.sendLines("shop.search-terms.hot_param.GET%20/search?q=phone:150|c", 1)
			f.awaitHot(patience, apis, phone)
			var urls []string
			for _, a := range apis {
				urls = append(urls, a.search("phone"))
			}
			stop := f.hammer(1, urls...)
			defer stop()
			const of = `{rule="search-terms"}`
			var rate, ratio, expected float64 = 0, 0, 95
			if c.exceeded {
				expected = 180
			}
			within(t, patience, "what is admitted", func() bool {
				rate, ratio = d.metric("hotparam_admitted_per_second"+of), d.metric("hotparam_limit_bound_ratio"+of)
				return rate >= expected && (ratio > 1 || !c.exceeded)
			})
			time.Sleep(12 * time.Second) // the burst has left the window
			rate, ratio = d.metric("hotparam_admitted_per_second"+of), d.metric("hotparam_limit_bound_ratio"+of)
			var keys []listedKey
			f.operate(&keys, "list")
			if len(keys) != 1 || keys[0].Admitted == nil || keys[0].Scope != "fleet" {
				t.Fatalf("%+v", keys)
			}
			got := keys[0].Admitted
			t.Logf("%.1f/s and %.1f/s of %.0f/s, %.2f of the bound", rate, got.PerSecond, got.Allowed, ratio)
			if got.Allowed != 100 || got.Limits != 1 || got.AtLeast || d.metric("hotparam_allowed_per_second"+of) != 100 {
				t.Errorf("%+v", got)
			}
			for _, r := range []float64{rate, got.PerSecond} {
				if !c.exceeded && (r < 80 || r > 105 || ratio > 1) || c.exceeded && (r < 180 || ratio <= 1) {
					t.Errorf("%.1f/s, %.2f of the bound", r, ratio)
				}
			}
		})
	}
}
