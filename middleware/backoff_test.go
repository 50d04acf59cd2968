package middleware

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// If more clients come than fit into maxBackoff, the rest is spread over all of it.
func TestBackoffIsBounded(t *testing.T) {
	var b backoffs
	const n = 10_000
	var thirds [3]int
	for range n {
		got := b.next(7, time.Hour+time.Millisecond, 90*time.Second, time.Second) - 90*time.Second
		if got < 0 || got > maxBackoff || got%time.Second != 0 {
			t.Fatalf("%v", got)
		}
		thirds[min(2, got*3/maxBackoff)]++
	}
	for _, m := range thirds {
		if m < n/4 {
			t.Errorf("by thirds of the time: %d", thirds)
		}
	}
	if got := b.next(7, time.Hour+time.Millisecond, math.MaxInt64, time.Second); got != math.MaxInt64/time.Second*time.Second {
		t.Errorf("for ever: %v", got)
	}
}

// Each key has its own line, even if many are in use. A line that has emptied is free for the next
// key.
func TestBackoffOfManyKeys(t *testing.T) {
	var b backoffs
	const keys = 1000
	late := 0
	for round := range 3 {
		now := time.Duration(round) * time.Hour
		for range 5 {
			for key := range uint64(keys) {
				b.next(rules.Hash(strconv.AppendUint(nil, key+uint64(round)*keys, 10)), now, 1, time.Second)
			}
		}
		for key := range uint64(keys) {
			if b.next(rules.Hash(strconv.AppendUint(nil, key+uint64(round)*keys, 10)), now, 1, time.Second) != 6*time.Second {
				late++
			}
		}
	}
	if late > 3*keys/50 {
		t.Errorf("%d of %d keys have lost their place", late, 3*keys)
	}
}

// Concurrent goroutines never get the same place.
func TestBackoffByManyAtOnce(t *testing.T) {
	var b backoffs
	var wait sync.WaitGroup
	var mu sync.Mutex
	comes := make(map[time.Duration]int)
	for range 8 {
		wait.Go(func() {
			for range 1000 {
				at := b.next(7, time.Hour, 1, 10*time.Millisecond)
				mu.Lock()
				comes[at]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for at := range 80 {
		if got := comes[time.Duration(at+1)*time.Second]; got != 100 {
			t.Errorf("%d come after %d s, want 100", got, at+1)
		}
	}
}

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
