//go:build !race

// These tests use a single goroutine, so they run only without the race detector.

package middleware

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/middleware/internal/backoff"
	"github.com/hotparam/hotparam/rules"
)

// retryKinds returns limits of all kinds, at n requests a second each.
func retryKinds(tb testing.TB) map[string]func(n, burst int64) (rules.Rule, []Option) {
	second := func(l *rules.Limit, n, burst int64) {
		l.Quota = rules.Quota{Rate: rules.Rate{N: n, Per: time.Second}, Burst: burst}
	}
	with := func(rule rules.Rule, change func(*rules.Limit)) func(n, burst int64) (rules.Rule, []Option) {
		return func(n, burst int64) (rules.Rule, []Option) {
			r := rule
			l := *r.Limit
			second(&l, n, burst)
			change(&l)
			r.Limit = &l
			if l.Scope == rules.ScopeExact {
				return r, []Option{WithBackend(newShared(tb))}
			}
			return r, nil
		}
	}
	same := func(*rules.Limit) {}
	window := func(a rules.Algorithm) func(*rules.Limit) {
		return func(l *rules.Limit) { l.Algorithm, l.Burst = a, l.Rate.N }
	}
	exact := func(l *rules.Limit) { l.Scope = rules.ScopeExact }
	one, keys, hot := limitRule(tb, "r", "*", rules.By{}, 1, 1), limitRule(tb, "r", "*", byNames("q"), 1, 1), hotRule(tb, "r", "*", byNames("q"), 1, 1)
	return map[string]func(n, burst int64) (rules.Rule, []Option){
		"one bucket":     with(one, same),
		"keys":           with(keys, same),
		"hot":            with(hot, same),
		"leaky bucket":   with(keys, func(l *rules.Limit) { l.Algorithm = rules.LeakyBucket }),
		"gcra":           with(hot, func(l *rules.Limit) { l.Algorithm = rules.GCRA }),
		"fixed window":   with(keys, window(rules.FixedWindow)),
		"sliding log":    with(hot, window(rules.SlidingLog)),
		"sliding blocks": with(one, window(rules.SlidingBlocks)),
		"exact":          with(one, exact),
		"exact keys":     with(keys, exact),
		"exact, hot":     with(hot, exact),
		"penalty":        with(keys, func(l *rules.Limit) { l.Penalty = 3 * time.Second }),
	}
}

// In each second, no more refused clients are asked to retry than the limit lets pass, and none
// before a retry can pass.
func TestRetriesComeAtTheLimitsRate(t *testing.T) {
	for name, build := range retryKinds(t) {
		t.Run(name, func(t *testing.T) {
			refusals := 0
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.Int64Range(1, 50).Draw(rt, "rate")
				rule, opts := build(n, rapid.Int64Range(1, 100).Draw(rt, "burst"))
				f := newFixture(rt, rules.Rules{Rules: []rules.Rule{rule}}, opts...)
				f.now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "phase"))
				f.heat(t, "r GET /s?q=1")
				comes := make(map[time.Duration]int64) // by second
				for range rapid.Int64Range(1, min(2000, n*200)).Draw(rt, "clients") {
					d := f.Check(search)
					if !d.Allowed {
						refusals++
						after := (d.RetryAfter + time.Second - 1) / time.Second * time.Second
						if d.Backoff < after || d.Backoff > after+backoff.Max {
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

// A thousand clients of a limit of 50/s that obey Retry-After are all served within about the
// twenty seconds that this takes. None is refused again and again.
func TestClientsThatObeyAreServed(t *testing.T) {
	const clients, rate = 1000, 50
	for name, build := range retryKinds(t) {
		if name == "penalty" || name == "exact" || name == "exact keys" || name == "exact, hot" {
			continue // any refusal locks; the backend has a clock of its own
		}
		t.Run(name, func(t *testing.T) {
			rule, opts := build(rate, rate)
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, opts...)
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
