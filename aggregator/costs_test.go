package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// costRule returns a rule that finds hot keys by their cost.
func costRule(id, backend string) rules.Rule {
	return rules.Rule{
		ID: id, Match: rules.Match{Route: anyRoute()}, By: rules.By{Kind: rules.ByAll}, Count: rules.Millis, Backend: backend,
		Hot:   []rules.Threshold{rules.Threshold{Kind: rules.Cost, Rate: rules.CostRate}.WithDefaults()},
		Limit: &rules.Limit{Mode: rules.ModeLimit, Concurrency: rules.AutoConcurrency},
	}
}

func anyRoute() rules.Route {
	route, _ := rules.ParseRoute("*")
	return route
}

// usageLines are the lines of one instance in one interval.
type usageLines struct {
	prefix string
	bytes  []byte
}

func (l *usageLines) add(kind wire.OriginKind, text string, u wire.Usage) {
	n, name := u.Encode()
	l.bytes = append(wire.AppendOrigin(l.bytes, wire.Plain, l.prefix, []byte(text), wire.OriginLine{Kind: kind, Name: name, N: n}), '\n')
}

// A key that makes all others slow is published with a hold, through decoder, feed and shards, by the
// shard of its pool. It cools with a reason once its requests stop.
func TestCostlyKeyIsPublished(t *testing.T) {
	ruleset := testRules(costRule("orders", "db"), costRule("search", "db"), hotRule("terms", 10, time.Second))
	out := newRecorder()
	var shards []*shard
	for part := range 3 {
		shards = append(shards, newShard(NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Part: part, Parts: 3, Homes: homes(ruleset, 3)}), 1))
	}
	feed := newFeeds(shards, ruleset)[0]
	d := decode.NewDecoder(ruleset, wire.Plain)
	const guilty = "GET /orders?status=all"
	slow, attack := false, false
	now := noon
	interval := func() {
		now = now.Add(100 * time.Millisecond)
		feed.Begin()
		for _, id := range []string{"orders", "search"} {
			lines, total := usageLines{prefix: ruleset.Namespace + "." + id}, wire.Usage{}
			each := 5 * time.Millisecond
			if slow {
				each = 50 * time.Millisecond
			}
			for i := range 20 {
				u := wire.Usage{Busy: 2 * each, Took: 2 * each, Begun: 2, Ended: 2}
				total.Add(&u)
				lines.add(wire.KeyUsage, fmt.Sprintf("GET /%s?status=%d", id, i), u)
			}
			if attack && id == "orders" {
				u := wire.Usage{Refused: 1}
				if slow {
					u = wire.Usage{Busy: 500 * time.Millisecond, Took: 500 * time.Millisecond, Begun: 1, Ended: 1}
				}
				total.Add(&u)
				lines.add(wire.KeyUsage, guilty, u)
			}
			lines.add(wire.RouteUsage, "GET /"+id, total)
			d.Packet(lines.bytes, now, feed)
		}
		feed.End(now, now, false)
	}
	held := func() *rules.Hot {
		h, hot := out.hot()[rules.Key{Rule: "orders", Text: guilty}]
		if !hot {
			return nil
		}
		return &h
	}
	for range 600 {
		interval()
	}
	if len(out.hot()) > 0 {
		t.Fatalf("hot without cause: %v", out.hot())
	}
	slow, attack = true, true
	found := 0
	for ; held() == nil && found < 20; found++ {
		interval()
	}
	for _, s := range shards {
		for _, p := range s.detector.costs.pools {
			t.Logf("%+v", p.judge.Explain(rules.Key{Rule: "orders", Text: guilty}))
			t.Logf("%+v", p.judge.Explain(rules.Key{Rule: "orders", Text: "GET /orders?status=1"}))
		}
	}
	h := held()
	if h == nil || len(out.hot()) != 1 {
		t.Fatalf("after 2 s %v are hot", out.hot())
	}
	t.Logf("held after %d intervals: %+v", found, *h.Hold)
	if h.Hold.Pool != "db" || h.Hold.Stage != rules.HoldTrial || h.Cause.Kind != rules.Cost || h.Mode != rules.ModeLimit || h.Scope != rules.ScopeFleet {
		t.Errorf("%+v %+v", h, h.Hold)
	}
	slow = false // the hold takes effect
	for range 100 {
		interval()
	}
	if h = held(); h == nil {
		t.Fatal("released while its requests are refused")
	}
	attack = false
	for range 100 {
		interval()
	}
	if held() != nil {
		t.Errorf("still held 10 s after its last request: %+v", h.Hold)
	}
	if last := out.changes[len(out.changes)-1].Cool; len(last) != 1 || last[0].Text != guilty || last[0].Released == "" {
		t.Errorf("cooled: %+v", last)
	}
}
