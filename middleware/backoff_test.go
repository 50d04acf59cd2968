package middleware

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The interval between retries accounts for the instances that share a limit, the mean time
// between returned permits, and the mean cost of requests.
func TestBackoffInterval(t *testing.T) {
	cost := limitRule(t, "r", "*", byNames("q"), 1, 1)
	cost.Count = rules.Units
	for name, c := range map[string]struct {
		scope rules.Scope
		n     int64
	}{"costs": {"", 10}, "a part of a limit": {rules.ScopeShare, 30}} { // 2 s for a request of 20
		cost.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: c.n, Per: time.Second}, Burst: c.n}, Mode: rules.ModeLimit, Scope: c.scope}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{cost}})
		f.SetInstances(3)
		letIn(t, f, search).End(Cost{Units: 20})
		var told []time.Duration
		for range 3 {
			told = append(told, f.Check(search).Backoff)
		}
		if told[1]-told[0] != 2*time.Second || told[2]-told[1] != 2*time.Second {
			t.Errorf("%s: %v", name, told)
		}
	}

	exact := exactly(limitRule(t, "r", "*", byNames("q"), 3600, 1), "")
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{exact}}, WithBackend(newShared(t)))
	f.SetInstances(3)
	f.Check(search)
	var told []time.Duration
	for range 3 {
		told = append(told, f.Check(search).Backoff)
	}
	if told[1]-told[0] != 3*time.Second || told[2]-told[1] != 3*time.Second {
		t.Errorf("an exact limit of three instances: %v", told)
	}

	busy := busyRule(t, "r", rules.By{}, 2, 0)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{busy}})
		for range 2 {
			defer letIn(t, f, search).End(Cost{})
		}
		time.Sleep(400 * time.Millisecond) // for so long the two permits are taken
		at := make(map[time.Duration]int)
		for range 100 {
			at[f.Check(search).Backoff]++
		}
		if len(at) != 20 || at[time.Second] != 5 || at[20*time.Second] != 5 {
			t.Errorf("of those that find no permit: %v", at)
		}
	})
}
