package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
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
	out := newRecorder()
	p := newPooled(out)
	held := func() *published.Hot {
		h, hot := out.hot()[rules.Key{Rule: "orders", Text: guilty}]
		if !hot {
			return nil
		}
		return &h
	}
	for range 600 {
		p.interval()
	}
	if len(out.hot()) > 0 {
		t.Fatalf("hot without cause: %v", out.hot())
	}
	p.slow, p.attack = true, true
	found := 0
	for ; held() == nil && found < 20; found++ {
		p.interval()
	}
	h := held()
	if h == nil || len(out.hot()) != 1 {
		t.Fatalf("after 2 s %v are hot", out.hot())
	}
	t.Logf("held after %d intervals: %+v", found, *h.Hold)
	if h.Hold.Pool != "db" || h.Hold.Stage != published.HoldTrial || h.Cause.Kind != rules.Cost || h.Mode != rules.ModeLimit || h.Scope != rules.ScopeFleet {
		t.Errorf("%+v %+v", h, h.Hold)
	}
	p.slow = false // the hold takes effect
	for range 100 {
		p.interval()
	}
	if h = held(); h == nil {
		t.Fatal("released while its requests are refused")
	}
	p.attack = false
	for range 100 {
		p.interval()
	}
	if held() != nil {
		t.Errorf("still held 10 s after its last request: %+v", h.Hold)
	}
	if last := out.changes[len(out.changes)-1].Cool; len(last) != 1 || last[0].Text != guilty || last[0].Released == "" {
		t.Errorf("cooled: %+v", last)
	}
}

// standbyRecorder is a recorder of a process that is not in office.
type standbyRecorder struct {
	*recorder
	standby bool
}

func (r *standbyRecorder) Standby() bool { return r.standby }

// The judge of a process in standby learns, and holds nothing. In office it knows what is usual.
func TestStandbyHoldsNothing(t *testing.T) {
	out := &standbyRecorder{newRecorder(), true}
	p := newPooled(out)
	for range 600 {
		p.interval()
	}
	p.slow, p.attack = true, true
	for range 20 {
		p.interval()
	}
	if len(out.changes) > 0 {
		t.Fatalf("in standby: %+v", out.changes)
	}
	out.standby = false
	for range 30 {
		p.interval()
	}
	if hot := out.hot(); len(hot) != 1 {
		t.Errorf("in office: %+v", hot)
	}
}

const guilty = "GET /orders?status=all"

// pooled are shards that receive what an instance reports of two rules with one back end.
type pooled struct {
	prefix  string
	feed    Feed
	decoder *decode.Decoder
	now     time.Time
	// Whether all requests are slow, and whether there are requests of the guilty key.
	slow, attack bool
}

func newPooled(out Publisher) *pooled {
	ruleset := testRules(costRule("orders", "db"), costRule("search", "db"), hotRule("terms", 10, time.Second))
	var shards []*shard
	for part := range 3 {
		shards = append(shards, newShard(NewDetector(DetectorConfig{Rules: ruleset, Publisher: out, Part: part, Parts: 3, Homes: homes(ruleset, 3)}), 1))
	}
	return &pooled{prefix: ruleset.Namespace + ".", feed: newFeeds(shards, ruleset)[0], decoder: decode.NewDecoder(ruleset, wire.Plain), now: noon}
}

// interval passes an interval, with its reports.
func (p *pooled) interval() {
	p.now = p.now.Add(100 * time.Millisecond)
	p.feed.Begin()
	for _, id := range []string{"orders", "search"} {
		lines, total := usageLines{prefix: p.prefix + id}, wire.Usage{}
		each := 5 * time.Millisecond
		if p.slow {
			each = 50 * time.Millisecond
		}
		for i := range 20 {
			u := wire.Usage{Busy: 2 * each, Took: 2 * each, Begun: 2, Ended: 2}
			total.Add(&u)
			lines.add(wire.KeyUsage, fmt.Sprintf("GET /%s?status=%d", id, i), u)
		}
		if p.attack && id == "orders" {
			u := wire.Usage{Refused: 1}
			if p.slow {
				u = wire.Usage{Busy: 500 * time.Millisecond, Took: 500 * time.Millisecond, Begun: 1, Ended: 1}
			}
			total.Add(&u)
			lines.add(wire.KeyUsage, guilty, u)
		}
		lines.add(wire.RouteUsage, "GET /"+id, total)
		p.decoder.Packet(lines.bytes, p.now, p.feed)
	}
	p.feed.End(p.now, p.now, false)
}
