package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/blame"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Usage that instances report becomes the capacity of the routes, with the rule and the pool, and
// stays when the rules change.
func TestCapacityOfRoutes(t *testing.T) {
	ruleset := testRules(costRule("orders", "db"), costRule("search", "db"), costRule("other", ""))
	out := newRecorder()
	s := newShard(NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Parts: 1, Homes: homes(ruleset, 1)}), 1)
	feed := newFeeds([]*shard{s}, ruleset)[0]
	d := decode.NewDecoder(ruleset, wire.Plain)
	now := noon
	run := func(n int, perInterval int64) {
		for range n {
			now = now.Add(base.FlushInterval)
			feed.Begin()
			for _, id := range []string{"orders", "search"} {
				lines := usageLines{prefix: ruleset.Namespace + "." + id}
				took := time.Duration(perInterval) * 5 * time.Millisecond
				lines.add(wire.RouteUsage, "GET /"+id, wire.Usage{Busy: took, Took: took, Begun: perInterval, Ended: perInterval})
				d.Packet(lines.bytes, now, feed)
			}
			feed.End(now, now, false)
		}
	}
	run(310, 20)
	run(110, 30)
	stats := s.detector.Stats()
	if len(stats.Pools) != 2 || stats.Pools[0].Name != "db" || stats.Pools[1].Name != "other" || len(stats.Pools[0].Routes) != 2 || len(stats.Pools[1].Routes) != 0 {
		t.Fatalf("%+v", stats.Pools)
	}
	r := stats.Pools[0].Routes[0]
	if near := func(got, want float64) bool { return got > 0.95*want && got < 1.05*want }; r.Rule != "orders" || r.Route != "GET /orders" || !near(r.Seen.Usual, 0.005) || !near(r.Seen.Served, 300) || !near(r.Rate, 300) || r.Seen.Slow != 0 || r.Seen.Windows != 4 {
		t.Errorf("%+v", r)
	}
	next := decode.NumberRules(ruleset).Next(testRules(costRule("search", "db")))
	s.reload(next, homes(next.ByNumber(), 1), now)
	if pools := s.detector.Stats().Pools; len(pools) != 1 || len(pools[0].Routes) != 1 || pools[0].Routes[0].Rule != "search" || pools[0].Routes[0].Seen.Windows != 4 {
		t.Errorf("after the change %+v", pools)
	}
	both := DetectorStats{}
	both.Merge(&stats)
	both.Merge(&stats)
	if len(both.Pools) != 2 {
		t.Errorf("a pool twice: %+v", both.Pools)
	}
}

var oneRule = map[string]*rules.Rule{"r": {ID: "r"}}

// The values of a rule whose keys have no route are not shown as routes.
func TestCapacityShowsNoValues(t *testing.T) {
	var c capacities
	for i, now := 0, noon; i < 1000; i, now = i+1, now.Add(base.FlushInterval) {
		c.add(now, map[string]*blame.RouteUsage{
			fmt.Sprintf("r q=%d", i%200): {Usage: blame.Usage{Ended: 3, Took: time.Second}},
			"gone GET /a":                {Usage: blame.Usage{Ended: 3, Took: time.Second}},
		}, map[string]*rules.Rule{"r": {ID: "r", ParamsOnly: true}})
	}
	if all := c.list(); len(all) != 1 || all[0].Route != "*" || all[0].Rate < 29 || all[0].Rate > 31 {
		t.Errorf("%+v", all)
	}
}

// A window that is interrupted does not count, and windows are forgotten after two days.
func TestCapacityForgets(t *testing.T) {
	var c capacities
	now := noon
	window := func(length time.Duration, requests int64) {
		c.add(now, map[string]*blame.RouteUsage{"r GET /a": {Usage: blame.Usage{Ended: requests, Took: time.Duration(requests) * time.Millisecond}}}, oneRule)
		now = now.Add(length)
		c.add(now, nil, oneRule)
	}
	seen := func() capacity.Seen { return c.list()[0].Seen }
	window(capacity.Window, 5000)
	window(3*capacity.Window, 50_000)
	now = now.Add(-time.Hour) // the clock is set
	window(capacity.Window, 100)
	window(capacity.Window, 100)
	if s := seen(); s.Served != 500 || s.Windows != 2 {
		t.Errorf("%+v", s)
	}
	for end := now.Add(capacitySpan); now.Before(end); {
		window(10*time.Minute, 0)
		window(capacity.Window, 100)
	}
	if s := seen(); s.Served != 500 {
		t.Errorf("forgotten after a day: %+v", s)
	}
	for end := now.Add(capacitySpan + time.Hour); now.Before(end); {
		window(10*time.Minute, 0)
		window(capacity.Window, 100)
	}
	if s := seen(); s.Served != 10 {
		t.Errorf("not forgotten after two days: %+v", s)
	}
}

// A pool keeps the routes with the most requests, and no more than its bound.
func TestCapacityRoutesAreBounded(t *testing.T) {
	var c capacities
	now := noon
	for i := range 20_000 {
		now = now.Add(base.FlushInterval)
		c.add(now, map[string]*blame.RouteUsage{
			"r GET /busy":                 {Usage: blame.Usage{Ended: 10, Took: time.Second}},
			"r GET /\xff":                 {Usage: blame.Usage{Ended: 10, Took: time.Second}},
			fmt.Sprintf("r GET /u/%d", i): {Usage: blame.Usage{Ended: 1, Took: time.Second}},
		}, oneRule)
		if len(c.routes) > 2*maxCapacityRoutes {
			t.Fatalf("%d routes", len(c.routes))
		}
	}
	if c.routes["r GET /\xff"] != nil {
		t.Error("a route that is not UTF-8 cannot be a label")
	}
	if all := c.list(); all[0].Route != "GET /busy" || all[0].Seen.Windows != 199 && all[0].Seen.Windows != 200 {
		t.Errorf("%+v", all[0])
	}
	if len(c.routes) < maxCapacityRoutes {
		t.Errorf("%d routes", len(c.routes))
	}
}
