package middleware

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// everyOther is an algorithm of a user's own: it lets every other request pass.
type everyOther struct{}

func (everyOther) New(*hotparam.Quota, time.Duration) limiter.State { return new(flip) }

type flip bool

func (f *flip) Do(_ time.Duration, ask limiter.Ask) limiter.Result {
	if ask.Kind != limiter.Take {
		return limiter.Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonWithin}}
	}
	*f = !*f
	if !*f {
		return limiter.Result{Decision: hotparam.Decision{Reason: hotparam.ReasonLimited}}
	}
	return limiter.Result{Decision: hotparam.Decision{Allowed: true, Reason: hotparam.ReasonWithin}, Taken: ask.N}
}

func (*flip) FreshAfter(time.Duration) time.Duration { return time.Hour }

// Every algorithm and option of a quota holds rules with one bucket, keys and hot keys
// alike. In passed there is a digit for each second: how many of five requests passed.
func TestAlgorithms(t *testing.T) {
	perMinute := func(n int64) hotparam.Quota {
		return hotparam.Quota{Rate: hotparam.Rate{N: n, Per: 4 * time.Second}, Burst: n}
	}
	with := func(q hotparam.Quota, change func(*hotparam.Quota)) hotparam.Quota {
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		quota  hotparam.Quota
		passed string
	}{
		"token_bucket":     {perMinute(4), "4111111111"},
		"gcra":             {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm = hotparam.GCRA }), "4111111111"},
		"initial":          {with(perMinute(4), func(q *hotparam.Quota) { q.Missing = 3 }), "1111111111"},
		"leaky_bucket":     {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm = hotparam.LeakyBucket }), "4111111111"},
		"fixed_window":     {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm = hotparam.FixedWindow }), "4000400040"},
		"sliding_log":      {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm = hotparam.SlidingLog }), "4000400040"},
		"sliding_log, few": {with(perMinute(7), func(q *hotparam.Quota) { q.Algorithm, q.Burst = hotparam.SlidingLog, 7 }), "5200520052"},
		"sliding_blocks":   {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm, q.Blocks = hotparam.SlidingBlocks, 4 }), "4000400040"},
		"count_denied":     {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm, q.CountDenied = hotparam.SlidingLog, true }), "4000000000"},
		"penalty":          {with(perMinute(4), func(q *hotparam.Quota) { q.Penalty = 3 * time.Second }), "4003003003"},
		"warm_up":          {with(perMinute(4), func(q *hotparam.Quota) { q.WarmUp, q.ColdFactor = 8*time.Second, 3 }), ""},
		"unlimited":        {hotparam.Quota{Burst: hotparam.Unlimited}, "5555555555"},
		"one's own":        {with(perMinute(4), func(q *hotparam.Quota) { q.Algorithm = "x_every_other" }), "3232323232"},
		"calendar": {with(perMinute(4), func(q *hotparam.Quota) {
			q.Algorithm, q.Calendar, q.Rate.Per = hotparam.FixedWindow, hotparam.CalendarMinute, time.Minute
		}), "4000000000"},
		"concurrency, alone": {hotparam.Quota{}, "5555555555"},
	} {
		for _, shape := range []string{"single", "keyed", "hot"} {
			t.Run(strings.Join([]string{name, shape}, " "), func(t *testing.T) {
				rule := limitRule(t, "r", "*", byNames("q"), 1, 1)
				rule.Limit.Quota = c.quota
				if c.quota == (hotparam.Quota{}) {
					rule.Limit.Concurrency = 1
				}
				switch shape {
				case "single":
					rule.By = hotparam.By{}
				case "hot":
					rule.Hot = []hotparam.Threshold{hotparam.NewThreshold(hotparam.Rate{N: 100, Per: time.Second})}
				}
				f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{rule}}, WithAlgorithm("x_every_other", everyOther{}))
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
						if locked := d.Reason == hotparam.ReasonLocked; locked && name != "penalty" {
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

// A locked key says for how long.
func TestPenalty(t *testing.T) {
	rule := limitRule(t, "r", "*", hotparam.By{}, 3600, 1)
	rule.Limit.Penalty = time.Minute
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{rule}})
	f.Check(search)
	want(t, f.Check(search), hotparam.Decision{Reason: hotparam.ReasonLimited, Limit: 1, RetryAfter: time.Minute, Rule: "r"})
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
