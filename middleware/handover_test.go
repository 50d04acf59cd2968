package middleware

import (
	"errors"
	"testing"
	"time"

	"github.com/hotparam/hotparam/middleware/internal/holding"
	"github.com/hotparam/hotparam/rules"
)

// sharedKinds returns rules that share 80 an hour, one for each way of keeping the used tokens.
func sharedKinds(t *testing.T) map[string]rules.Rule {
	t.Helper()
	hot := shareRule(t, "r", byNames("q"), 80, 80)
	hot.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
	excepted := hot
	excepted.Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "vip"}}, Limit: hot.Limit}}
	windowed := shareRule(t, "r", byNames("q"), 80, 80)
	windowed.Limit.Algorithm = rules.SlidingLog
	locked := shareRule(t, "r", rules.By{}, 80, 80)
	locked.Limit.Penalty = time.Millisecond
	return map[string]rules.Rule{
		"single": shareRule(t, "r", rules.By{}, 80, 80), "keyed": shareRule(t, "r", byNames("q"), 80, 80),
		"hot": hot, "hot with exceptions": excepted, "windowed": windowed, "locked": locked,
	}
}

// sharer returns one of n instances with the rule, and a function that returns how many requests
// it lets pass now.
func sharer(t *testing.T, rule rules.Rule, n int) (f *fixture, passes func() int) {
	t.Helper()
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	f.SetInstances(n)
	if len(rule.Hot) > 0 {
		f.heat(t, "r GET /s?q=1")
	}
	return f, func() (passed int) {
		for f.Check(search).Allowed {
			passed++
		}
		f.now += 2 * time.Millisecond // a lock ends
		return passed
	}
}

// The next instance gets exactly the tokens that the previous one had left, once.
func TestHandOver(t *testing.T) {
	for name, rule := range sharedKinds(t) {
		t.Run(name, func(t *testing.T) {
			old, oldPasses := sharer(t, rule, 8)
			for range 4 {
				old.Check(search)
			}
			left := old.HandOver()
			if n := oldPasses(); n != 0 {
				t.Errorf("%d pass at the one that has left", n)
			}
			next, nextPasses := sharer(t, rule, 8)
			next.HandOver() // a new instance gives up its part at its start
			if n := nextPasses(); n != 0 {
				t.Errorf("%d pass at a new one", n)
			}
			if err := next.Inherit(left, 0); err != nil {
				t.Fatal(err)
			}
			reload(t, next, rule) // that changes nothing
			if n := nextPasses(); n != 6 {
				t.Errorf("%d pass at one that has inherited 6\n%s", n, left)
			}
			later, laterPasses := sharer(t, rule, 8)
			later.HandOver()
			if err := later.Inherit(left, 24*time.Hour); err != nil {
				t.Fatal(err)
			}
			if n := laterPasses(); n != 0 {
				t.Errorf("%d pass with permits that others have earned since, want 0", n)
			}
			later.Endow(-1)
			if n := laterPasses(); n != 10 {
				t.Errorf("%d pass with the whole part", n)
			}
		})
	}
}

// Keys that were not handed over start with the old instance's remainder for unnamed keys, after a
// chain of handovers too. A handover contains no text of a key.
func TestHandOverOfKeys(t *testing.T) {
	for name, rule := range sharedKinds(t) {
		if len(rule.By.Names) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f, passes := sharer(t, rule, 8)
			for range 7 {
				f.Check(search)
			}
			for range 3 { // the others never see the key
				left := f.HandOver()
				if len(left) == 0 || len(left) > 200 {
					t.Fatalf("%s", left)
				}
				f, passes = sharer(t, rule, 8)
				f.HandOver()
				if err := f.Inherit(left, 0); err != nil {
					t.Fatal(err)
				}
			}
			if len(rule.Hot) > 0 {
				f.heat(t, "r GET /s?q=1", "r GET /s?q=2")
			}
			if n := passes(); n != 3 {
				t.Errorf("%d passed, want 3", n)
			}
			other := 0
			for f.Check(get("GET /s", "/s", "q=2")).Allowed {
				other++
			}
			if other != 10 {
				t.Errorf("%d of another key passed, want 10", other)
			}
		})
	}
}

// A handover names a bounded number of keys. All others get the least that any unnamed key had, so
// the next instance is stricter.
func TestHandOverIsBounded(t *testing.T) {
	q := &rules.Quota{Rate: rules.Rate{N: 80, Per: time.Hour}, Burst: 80}
	left := holding.New(q, 8).Leave(time.Hour, map[uint64]float64{1: 9, 2: 5, 3: 3, 4: 2}, true, 2)
	if left.Left != 7 || len(left.Of) != 2 || left.Of[1] != 1 || left.Of[2] != 5 {
		t.Errorf("%+v", left)
	}
}

// An instance that does not know its remaining tokens has none during an outage of the backend
// either. Of a concurrency limit it has one permit.
func TestJoiningWithoutBackend(t *testing.T) {
	exact := shareRule(t, "r", rules.By{}, 80, 80)
	exact.Limit.Scope = rules.ScopeExact
	busy := busyRule(t, "busy", rules.By{}, 8, 0)
	busy.Limit.Scope = rules.ScopeShare
	backend := newShared(t)
	backend.err = errors.New("away")
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{exact}}, WithBackend(backend))
	b := newFixture(t, rules.Rules{Rules: []rules.Rule{busy}})
	served := func() int {
		var tickets []*Ticket
		for {
			d, ticket := b.Begin(search)
			if !d.Allowed {
				break
			}
			tickets = append(tickets, ticket)
		}
		for _, ticket := range tickets {
			ticket.End(Cost{})
		}
		return len(tickets)
	}
	f.HandOver()
	b.HandOver()
	if n := served(); n != 1 {
		t.Errorf("%d are served, want 1", n)
	}
	f.SetInstances(8)
	b.SetInstances(4)
	f.Endow(-1)
	b.Endow(-1)
	passed := 0
	for f.Check(search).Allowed {
		passed++
	}
	if n := served(); passed != 10 || n != 2 {
		t.Errorf("%d pass and %d are served, want 10 and 2", passed, n)
	}
	if err := f.Inherit([]byte("{"), 0); err == nil {
		t.Error("a handover cut short: no error")
	}
}
