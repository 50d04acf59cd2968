package middleware

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// everyOther is a custom algorithm that lets every other request pass.
type everyOther struct{}

func (everyOther) New(*rules.Quota, time.Duration) limiter.State { return new(flip) }

type flip bool

func (f *flip) Do(_ time.Duration, ask limiter.Request) limiter.Result {
	if ask.Kind != limiter.Take {
		return limiter.Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonWithin}}
	}
	*f = !*f
	if !*f {
		return limiter.Result{Decision: rules.Decision{Reason: rules.ReasonLimited}}
	}
	return limiter.Result{Decision: rules.Decision{Allowed: true, Reason: rules.ReasonWithin}, Taken: ask.N}
}

func (*flip) FreshAfter(time.Duration) time.Duration { return time.Hour }

// Every algorithm and option of a quota works for rules with one bucket, for keys and for hot
// keys. Each digit of passed is a second's number of passed requests, of five.
func TestAlgorithms(t *testing.T) {
	perMinute := func(n int64) rules.Quota {
		return rules.Quota{Rate: rules.Rate{N: n, Per: 4 * time.Second}, Burst: n}
	}
	with := func(q rules.Quota, change func(*rules.Quota)) rules.Quota {
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		quota  rules.Quota
		passed string
	}{
		"token_bucket":     {perMinute(4), "4111111111"},
		"gcra":             {with(perMinute(4), func(q *rules.Quota) { q.Algorithm = rules.GCRA }), "4111111111"},
		"initial":          {with(perMinute(4), func(q *rules.Quota) { q.Missing = 3 }), "1111111111"},
		"leaky_bucket":     {with(perMinute(4), func(q *rules.Quota) { q.Algorithm = rules.LeakyBucket }), "4111111111"},
		"fixed_window":     {with(perMinute(4), func(q *rules.Quota) { q.Algorithm = rules.FixedWindow }), "4000400040"},
		"sliding_log":      {with(perMinute(4), func(q *rules.Quota) { q.Algorithm = rules.SlidingLog }), "4000400040"},
		"sliding_log, few": {with(perMinute(7), func(q *rules.Quota) { q.Algorithm, q.Burst = rules.SlidingLog, 7 }), "5200520052"},
		"sliding_blocks":   {with(perMinute(4), func(q *rules.Quota) { q.Algorithm, q.Blocks = rules.SlidingBlocks, 4 }), "4000400040"},
		"count_denied":     {with(perMinute(4), func(q *rules.Quota) { q.Algorithm, q.CountDenied = rules.SlidingLog, true }), "4000000000"},
		"penalty":          {with(perMinute(4), func(q *rules.Quota) { q.Penalty = 3 * time.Second }), "4003003003"},
		"warm_up":          {with(perMinute(4), func(q *rules.Quota) { q.WarmUp, q.ColdFactor = 8*time.Second, 3 }), ""},
		"unlimited":        {rules.Quota{Burst: rules.Unlimited}, "5555555555"},
		"one's own":        {with(perMinute(4), func(q *rules.Quota) { q.Algorithm = "x_every_other" }), "3232323232"},
		"calendar": {with(perMinute(4), func(q *rules.Quota) {
			q.Algorithm, q.Calendar, q.Rate.Per = rules.FixedWindow, rules.CalendarMinute, time.Minute
		}), "4000000000"},
		"concurrency, alone": {rules.Quota{}, "5555555555"},
	} {
		for _, shape := range []string{"single", "keyed", "hot"} {
			t.Run(strings.Join([]string{name, shape}, " "), func(t *testing.T) {
				rule := limitRule(t, "r", "*", byNames("q"), 1, 1)
				rule.Limit.Quota = c.quota
				if c.quota == (rules.Quota{}) {
					rule.Limit.Concurrency = 1
				}
				switch shape {
				case "single":
					rule.By = rules.By{}
				case "hot":
					rule.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
				}
				f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithAlgorithm("x_every_other", everyOther{}))
				if shape == "hot" {
					f.heat(t, "r GET /s?q=1")
				}
				passed, total := strings.Builder{}, 0
				for range 10 {
					n := 0
					for range 5 {
						d := f.Check(search)
						if d.Allowed {
							n++
						} else if d.RetryAfter == 0 && name != "one's own" {
							t.Fatalf("%+v", d)
						}
						if locked := d.Reason == rules.ReasonLocked; locked && name != "penalty" {
							t.Fatalf("%+v", d)
						}
					}
					passed.WriteByte(byte('0' + n))
					total += n
					f.now += time.Second
				}
				switch {
				case name == "warm_up": // slower than the rate, which is 1/s, and no burst
					if total < 3 || total > 10 {
						t.Errorf("passed %s", &passed)
					}
				case passed.String() != c.passed:
					t.Errorf("passed %s, want %s", &passed, c.passed)
				}
			})
		}
	}
}

// The refusal of a locked key states how long the lock lasts.
func TestPenalty(t *testing.T) {
	rule := limitRule(t, "r", "*", rules.By{}, 3600, 1)
	rule.Limit.Penalty = time.Minute
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	f.Check(search)
	want(t, f.Check(search), rules.Decision{Reason: rules.ReasonLimited, Limit: 1, RetryAfter: time.Minute, Rule: "r"})
	f.now += 20 * time.Second
	w := serve(f.Handler(ok), "GET", "/s?q=1")
	if w.Code != 429 || w.Header().Get("Retry-After") != "41" { // a place behind the first request's
		t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	f.now += 40 * time.Second
	if d := f.Check(search); !d.Allowed {
		t.Errorf("%+v", d)
	}
}
