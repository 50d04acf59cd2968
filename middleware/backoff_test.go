package middleware

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// retryKinds are limits of all kinds, at n requests a second each.
func retryKinds(tb testing.TB) map[string]func(n, burst int64) (hotparam.Rule, []Option) {
	second := func(l *hotparam.Limit, n, burst int64) {
		l.Quota = hotparam.Quota{Rate: hotparam.Rate{N: n, Per: time.Second}, Burst: burst}
	}
	with := func(rule hotparam.Rule, change func(*hotparam.Limit)) func(n, burst int64) (hotparam.Rule, []Option) {
		return func(n, burst int64) (hotparam.Rule, []Option) {
			r := rule
			l := *r.Limit
			second(&l, n, burst)
			change(&l)
			r.Limit = &l
			if l.Scope == hotparam.ScopeExact {
				return r, []Option{WithBackend(newShared(tb))}
			}
			return r, nil
		}
	}
	same := func(*hotparam.Limit) {}
	window := func(a hotparam.Algorithm) func(*hotparam.Limit) {
		return func(l *hotparam.Limit) { l.Algorithm, l.Burst = a, l.Rate.N }
	}
	exact := func(l *hotparam.Limit) { l.Scope = hotparam.ScopeExact }
	one, keys, hot := limitRule(tb, "r", "*", hotparam.By{}, 1, 1), limitRule(tb, "r", "*", byNames("q"), 1, 1), hotRule(tb, "r", "*", byNames("q"), 1, 1)
	return map[string]func(n, burst int64) (hotparam.Rule, []Option){
		"one bucket":     with(one, same),
		"keys":           with(keys, same),
		"hot":            with(hot, same),
		"leaky bucket":   with(keys, func(l *hotparam.Limit) { l.Algorithm = hotparam.LeakyBucket }),
		"gcra":           with(hot, func(l *hotparam.Limit) { l.Algorithm = hotparam.GCRA }),
		"fixed window":   with(keys, window(hotparam.FixedWindow)),
		"sliding log":    with(hot, window(hotparam.SlidingLog)),
		"sliding blocks": with(one, window(hotparam.SlidingBlocks)),
		"exact":          with(one, exact),
		"exact keys":     with(keys, exact),
		"exact, hot":     with(hot, exact),
		"penalty":        with(keys, func(l *hotparam.Limit) { l.Penalty = 3 * time.Second }),
	}
}

// Clients that are refused are told to come back at most so many in each second as the limit
// lets pass, and none before a retry can pass.
func TestRetriesComeAtTheLimitsRate(t *testing.T) {
	for name, build := range retryKinds(t) {
		t.Run(name, func(t *testing.T) {
			refusals := 0
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.Int64Range(1, 50).Draw(rt, "rate")
				rule, opts := build(n, rapid.Int64Range(1, 100).Draw(rt, "burst"))
				f := newFixture(rt, hotparam.Rules{Rules: []hotparam.Rule{rule}}, opts...)
				f.now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "phase"))
				f.heat(t, "r GET /s?q=1")
				comes := make(map[time.Duration]int64) // by second
				for range rapid.Int64Range(1, min(2000, n*200)).Draw(rt, "clients") {
					d := f.Check(search)
					if !d.Allowed {
						refusals++
						after := (d.RetryAfter + time.Second - 1) / time.Second * time.Second
						if d.Backoff < after || d.Backoff > after+maxBackoff {
							rt.Fatalf("%v though a retry can pass after %v", d.Backoff, d.RetryAfter)
						}
						comes[(f.now+d.Backoff)/time.Second]++
						if got := d.Answer().Header["Retry-After"]; len(got) != 1 || got[0] != strconv.Itoa(int(d.Backoff/time.Second)) {
							rt.Fatalf("Retry-After %q, want that of %v", got, d.Backoff)
						}
					}
					f.now += time.Duration(rapid.Int64Range(0, int64(5*time.Millisecond)).Draw(rt, "pause"))
				}
				for second, m := range comes {
					if m > n {
						rt.Fatalf("%d are told to come in second %d, at %d/s", m, second, n)
					}
				}
			})
			if refusals == 0 {
				t.Error("none was refused: the test tests too little")
			}
		})
	}
}

// A thousand clients of a limit of 50/s that do as they are told are all served within
// about the twenty seconds that this takes, and none is refused again and again.
func TestClientsThatObeyAreServed(t *testing.T) {
	const clients, rate = 1000, 50
	for name, build := range retryKinds(t) {
		if name == "penalty" || name == "exact" || name == "exact keys" || name == "exact, hot" {
			continue // any refusal locks; the backend has a clock of its own
		}
		t.Run(name, func(t *testing.T) {
			rule, opts := build(rate, rate)
			f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{rule}}, opts...)
			f.heat(t, "r GET /s?q=1")
			start := f.now
			random := rand.New(rand.NewPCG(1, 2))
			due := make([]time.Duration, clients)
			tries := make([]int, clients)
			for i := range due {
				due[i] = start + time.Duration(random.Int64N(int64(time.Second)))
			}
			left := clients
			for left > 0 {
				next := 0
				for i := range due {
					if due[i] < due[next] {
						next = i
					}
				}
				f.now = due[next]
				tries[next]++
				if d := f.Check(search); d.Allowed {
					due[next] = math.MaxInt64
					left--
				} else {
					due[next] += d.Backoff
				}
			}
			if took := f.now - start; took > 30*time.Second {
				t.Errorf("all were served after %v", took)
			}
			if most := slices.Max(tries); most > 6 {
				t.Errorf("a client tried %d times", most)
			}
		})
	}
}

// Of more clients than fit into maxBackoff the rest is spread over all of it.
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

// Keys have lines of their own, even if many are in use, and a line that nobody stands in is
// free for the next key.
func TestBackoffOfManyKeys(t *testing.T) {
	var b backoffs
	const keys = 1000
	late := 0
	for round := range 3 {
		now := time.Duration(round) * time.Hour
		for range 5 {
			for key := range uint64(keys) {
				b.next(hotparam.Hash(strconv.AppendUint(nil, key+uint64(round)*keys, 10)), now, 1, time.Second)
			}
		}
		for key := range uint64(keys) {
			if b.next(hotparam.Hash(strconv.AppendUint(nil, key+uint64(round)*keys, 10)), now, 1, time.Second) != 6*time.Second {
				late++
			}
		}
	}
	if late > 3*keys/50 {
		t.Errorf("%d of %d keys have lost their place", late, 3*keys)
	}
}

// Many goroutines take no place twice.
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

// Instances share a limit, permits are given back as they were so far, and requests cost
// what requests have cost: so far apart are clients told to come.
func TestBackoffInterval(t *testing.T) {
	cost := limitRule(t, "r", "*", byNames("q"), 1, 1)
	cost.Count = hotparam.Units
	for name, c := range map[string]struct {
		scope hotparam.Scope
		n     int64
	}{"costs": {"", 10}, "a part of a limit": {hotparam.ScopeShare, 30}} { // 2 s for a request of 20
		cost.Limit = &hotparam.Limit{Quota: hotparam.Quota{Rate: hotparam.Rate{N: c.n, Per: time.Second}, Burst: c.n}, Mode: hotparam.ModeLimit, Scope: c.scope}
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{cost}})
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
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{exact}}, WithBackend(newShared(t)))
	f.SetInstances(3)
	f.Check(search)
	var told []time.Duration
	for range 3 {
		told = append(told, f.Check(search).Backoff)
	}
	if told[1]-told[0] != 3*time.Second || told[2]-told[1] != 3*time.Second {
		t.Errorf("an exact limit of three instances: %v", told)
	}

	busy := busyRule(t, "r", hotparam.By{}, 2, 0)
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{busy}})
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
