package middleware

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// costRule returns a rule that counts the costs of keys by q, and limits hot keys to perHour of
// the unit.
func costRule(tb testing.TB, id string, unit rules.Unit, perHour, burst int64) rules.Rule {
	r := hotRule(tb, id, "GET /s", byNames("q"), perHour, burst)
	r.Count = unit
	return r
}

func TestCostIn(t *testing.T) {
	cost := Cost{Bytes: 5, Units: 7, Time: 1500 * time.Microsecond}
	for unit, want := range map[rules.Unit]int64{rules.Requests: 1, rules.Bytes: 5, rules.Units: 7, rules.Millis: 2} {
		if got := cost.inUnit(unit); got != want {
			t.Errorf("%v: %d, want %d", unit, got, want)
		}
	}
	for _, c := range []struct {
		cost Cost
		unit rules.Unit
		want int64
	}{
		{Cost{Time: time.Millisecond}, rules.Millis, 1},
		{Cost{Time: 1}, rules.Millis, 1},
		{Cost{}, rules.Millis, 0},
		{Cost{Time: -time.Second}, rules.Millis, 0},
		{Cost{Bytes: -1}, rules.Bytes, 0},
		{Cost{Units: 1 << 62}, rules.Units, maxCost},
	} {
		if got := c.cost.inUnit(c.unit); got != c.want {
			t.Errorf("%+v in %v: %d, want %d", c.cost, c.unit, got, c.want)
		}
	}
}

// Costs are counted at the end, for all rules that need them. A hot key then waits until its cost
// has been earned.
func TestCostsOfHotKeys(t *testing.T) {
	requests := hotRule(t, "requests", "GET /s", byNames("q"), 0, 0)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		costRule(t, "bytes", rules.Bytes, 3600, 100), costRule(t, "units", rules.Units, 0, 0), requests,
	}})
	begin := func() (rules.Decision, *Ticket) { return f.Begin(search) }
	d, ticket := begin()
	want(t, d, rules.Decision{Allowed: true})
	if got := f.keyCounts(); got["requests GET /s?q=1"] != 1 || len(got) != 1 {
		t.Errorf("counted %v before the end", got)
	}
	ticket.End(Cost{Bytes: 1000, Units: 3})
	if got := f.keyCounts(); got["bytes GET /s?q=1"] != 1000 || got["units GET /s?q=1"] != 3 || len(got) != 2 {
		t.Errorf("counted %v at the end", got)
	}
	d, ticket = begin() // it is not hot yet, and so when it ends
	f.heat(t, "bytes GET /s?q=1")
	ticket.End(Cost{Bytes: 40})
	want(t, d, rules.Decision{Allowed: true})
	d, ticket = begin()
	want(t, d, rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 100, Remaining: 60, Rule: "bytes"})
	_, second := begin() // at the same time
	ticket.End(Cost{Bytes: 90})
	second.End(Cost{Bytes: 1})
	refused := rules.Decision{Reason: rules.ReasonLimited, Limit: 100, RetryAfter: 32 * time.Second, Rule: "bytes"}
	d, ticket = begin()
	want(t, d, refused)
	if ticket != nil {
		t.Error("a refused request has a ticket")
	}
	ticket.End(Cost{Bytes: 1 << 30}) // costs nothing
	f.now += 32 * time.Second
	d, ticket = begin()
	want(t, d, rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 100, Remaining: 1, Rule: "bytes"})
	ticket.End(Cost{})
	if s := f.Stats(); s.Charged != 4 || s.Limited != 1 {
		t.Errorf("%+v, want 4 charged: one cost nothing", s)
	}
	if hot := f.HotKeys(); hot[0].Passed != 3 || hot[0].Refused != 1 {
		t.Errorf("%+v", hot[0])
	}
	want(t, f.Check(search), rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 100, Remaining: 1, Rule: "bytes"})
	f.keyCounts()
	if d, ticket := f.Begin(get("GET /other", "/other", "q=1")); !d.Allowed || ticket != nil {
		t.Errorf("%+v, %v: no rule wants its cost", d, ticket)
	}
}

// A request that another rule refuses costs nothing, and its tokens are returned.
func TestRefusedByAnother(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		costRule(t, "bytes", rules.Bytes, 1, 100), limitRule(t, "one", "GET /s", rules.By{}, 1, 1), limitRule(t, "two", "GET /s", rules.By{}, 1, 2),
	}})
	f.heat(t, "bytes GET /s?q=1")
	_, ticket := f.Begin(search)
	ticket.End(Cost{Bytes: 1})
	for range 3 {
		if d, ticket := f.Begin(search); d.Allowed || ticket != nil || d.Rule != "one" {
			t.Errorf("%+v, %v", d, ticket)
		}
	}
	if hot := f.HotKeys(); hot[0].Passed != 1 || hot[0].Refused != 3 {
		t.Errorf("%+v", hot[0])
	}
}

// Rules without hot limit costs as well, for each key or for all.
func TestCostsWithoutHot(t *testing.T) {
	for name, by := range map[string]rules.By{"keyed": byNames("q"), "single": {}} {
		t.Run(name, func(t *testing.T) {
			rule := limitRule(t, "r", "GET /s", by, 3600, 10)
			rule.Count = rules.Units
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			for i, cost := range []int64{4, 4, 100} {
				d, ticket := f.Begin(search)
				want(t, d, rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 10, Remaining: 10 - 4*int64(i), Rule: "r"})
				ticket.End(Cost{Units: cost})
			}
			// The debt is 98 units, of which the limit remembers a minute's worth.
			want(t, f.Check(search), rules.Decision{Reason: rules.ReasonLimited, Limit: 10, RetryAfter: 61 * time.Second, Rule: "r"})
			d, ticket := f.Begin(get("GET /s", "/s", "q=2"))
			if d.Allowed != (name == "keyed") || (ticket != nil) != d.Allowed {
				t.Errorf("another key: %+v, %v", d, ticket)
			}
			if got := f.keyCounts(); len(got) != 0 {
				t.Errorf("counted %v", got)
			}
		})
	}
}

func TestEnterCost(t *testing.T) {
	rule := hotRule(t, "r", "Search/Find", byNames("q"), 3600, 10)
	rule.Count = rules.Units
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	f.heat(t, "r Search/Find?q=1")
	param := rules.Param{Name: "q", Value: "1"}
	d, ticket := f.EnterCost(t.Context(), "Search/Find", param)
	want(t, d, rules.Decision{Allowed: true, Reason: rules.ReasonWithin, Limit: 10, Remaining: 10, Rule: "r"})
	ticket.End(Cost{Units: 25})
	if d, ticket := f.EnterCost(t.Context(), "Search/Find", param); d.Allowed || ticket != nil || d.RetryAfter != 16*time.Second {
		t.Errorf("%+v, %v", d, ticket)
	}
	if d, ticket := f.EnterCost(t.Context(), "Search/List", param); !d.Allowed || ticket != nil {
		t.Errorf("%+v, %v", d, ticket)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if d, ticket := f.EnterCost(gone, "Search/Find", param); d.Reason != rules.ReasonOpen || ticket != nil {
		t.Errorf("%+v, %v", d, ticket)
	}
	if got := f.keyCounts(); got["r Search/Find?q=1"] != 25 || len(got) != 1 {
		t.Errorf("counted %v", got)
	}
}

// A cost larger than one Add can take is counted in parts.
func TestHugeCost(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{costRule(t, "r", rules.Bytes, 0, 0)}})
	_, ticket := f.Begin(search)
	ticket.End(Cost{Bytes: 10<<32 + 7})
	if got := f.keyCounts()["r GET /s?q=1"]; got != 10<<32+7 {
		t.Errorf("counted %d", got)
	}
}

// A panic of the guard at the end fails no request.
func TestEndPanics(t *testing.T) {
	broken := false
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{costRule(t, "r", rules.Units, 1, 1)}},
		WithClock(func() time.Duration {
			if broken {
				panic("no clock")
			}
			return time.Hour
		}))
	_, ticket := f.Begin(search)
	broken = true
	ticket.End(Cost{Units: 1})
	if n := f.Stats().Panics; n != 1 {
		t.Errorf("%d panics were counted", n)
	}
}

// With many concurrent requests every cost is counted, and every ticket has its own keys.
func TestConcurrentCosts(t *testing.T) {
	const workers, each = 8, 1000
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		costRule(t, "units", rules.Units, 0, 0), costRule(t, "bytes", rules.Bytes, 0, 0),
	}})
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			req := get("GET /s", "/s", fmt.Sprint("q=", w))
			for range each {
				_, ticket := f.Begin(req)
				ticket.End(Cost{Units: int64(w), Bytes: 1})
			}
		})
	}
	all.Wait()
	want := map[string]int64{}
	for w := range int64(workers) {
		want[fmt.Sprint("bytes GET /s?q=", w)] = each
		if w > 0 {
			want[fmt.Sprint("units GET /s?q=", w)] = w * each
		}
	}
	if got := f.keyCounts(); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

func TestAddCost(t *testing.T) {
	AddCost(t.Context(), 5) // no one collects it
	ctx, outer := withSpent(t.Context())
	AddCost(ctx, 5)
	inner, own := withSpent(ctx)
	AddCost(inner, 2)
	AddCost(inner, -1)
	AddCost(inner, -1<<62)
	AddCost(inner, 1<<62)
	if got := own.units.Load(); got != 1 {
		t.Errorf("inner: %d", got)
	}
	if got := outer.units.Load(); got != 6 {
		t.Errorf("outer: %d, want what the inner said, too", got)
	}
}

// Costs that a handler adds to the context of CollectCost are charged with the rest.
func TestCollectCost(t *testing.T) {
	rule := hotRule(t, "r", "*", byNames("q"), 3600, 10)
	rule.Count = rules.Units
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	for range 2 { // the second has the ticket of the first
		_, ticket := f.Begin(search)
		if !ticket.Counts(rules.Units) || ticket.Counts(rules.Bytes) {
			t.Error("the ticket counts something else than units")
		}
		outer, all := CollectCost(t.Context())
		ctx, units := CollectCost(outer)
		AddCost(ctx, 4)
		ticket.End(Cost{Units: units() + 3})
		if got := f.keyCounts(); got["r GET /s?q=1"] != 7 || all() != 4 {
			t.Errorf("counted %v, want 7; further out %d, want 4", got, all())
		}
	}
	var none *Ticket
	if none.Counts(rules.Units) {
		t.Error("no ticket counts units")
	}
}
