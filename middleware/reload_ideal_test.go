package middleware

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// envelope compares the tokens taken by a key with the largest quota that its rule has had. Its
// level falls at the highest rate and never exceeds the largest burst. It is in tokens ×
// nanoseconds of an hour, so it is exact.
type envelope struct {
	perHour, burst int64
	level, at      int64
}

func (e *envelope) settle(now time.Duration) {
	e.level, e.at = max(0, e.level-(int64(now)-e.at)*e.perHour), int64(now)
}

// allow puts a quota in force from now on.
func (e *envelope) allow(now time.Duration, l *rules.Limit) {
	e.settle(now)
	e.perHour, e.burst = max(e.perHour, l.Rate.N), max(e.burst, l.Burst)
}

// take takes a token at now, and reports whether the largest quota had one.
func (e *envelope) take(now time.Duration) bool {
	e.settle(now)
	e.level += int64(time.Hour)
	return e.level <= e.burst*int64(time.Hour)
}

// drawVersion draws a version of rule r: with or without hot, or with hot and exceptions, and
// permits. Without hot an exception that is added or removed starts from scratch.
func drawVersion(t *rapid.T, match rules.Match, excepts bool) []rules.Rule {
	if rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
		return nil
	}
	perHour := func(what string) int64 { return rapid.SampledFrom([]int64{60, 900, 3600}).Draw(t, what) }
	burst := func(what string) int64 { return rapid.SampledFrom([]int64{1, 3, 8}).Draw(t, what) }
	r := rules.Rule{ID: "r", Match: match, By: byNames("q"), Limit: limit(perHour("rate"), burst("burst"))}
	if excepts || rapid.Bool().Draw(t, "hot") {
		r.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: rapid.Int64Range(5, 500).Draw(t, "threshold"), Per: 10 * time.Second})}
		if excepts && rapid.Bool().Draw(t, "exception") {
			r.Except = []rules.Exception{{Values: is("q", "1"), Limit: limit(perHour("its rate"), burst("its burst"))}}
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "permits") == 0 {
		r.Limit.Concurrency = rapid.IntRange(1, 3).Draw(t, "at a time")
		for i := range r.Except {
			r.Except[i].Limit.Concurrency = r.Limit.Concurrency
		}
	}
	return []rules.Rule{r}
}

// Through any changes of a rule and of its hot keys, the tokens taken by a key never exceed the
// largest quota so far. Permits in use count, and all are returned.
func TestReloadForgivesNothing(t *testing.T) {
	match := rules.Match{Route: parse(t, "GET /s")}
	rapid.Check(t, func(t *rapid.T) {
		var ruleset []rules.Rule
		f := newFixture(t, rules.Rules{})
		var ideal envelope
		var tickets []*Ticket // with a permit each
		put := func(next []rules.Rule) {
			ruleset = next
			if err := f.Reload(&rules.Rules{Namespace: "test", Rules: ruleset}); err != nil {
				t.Fatal(err)
			}
			for i := range ruleset {
				ideal.allow(f.now, ruleset[i].Limit)
				for j := range ruleset[i].Except {
					ideal.allow(f.now, ruleset[i].Except[j].Limit)
				}
			}
		}
		heat := func(on bool) {
			var hot []published.Hot
			if on {
				hot = []published.Hot{{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Low: 1, High: 1, Rate: 1}}
			}
			replaceHot(f.hot, "", hot)
		}
		hot, excepts := false, rapid.Bool().Draw(t, "exceptions")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0, 1:
				put(drawVersion(t, match, excepts))
			case 2:
				hot = rapid.Bool().Draw(t, "is hot")
				heat(hot)
			case 3:
				f.now += rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(t, "later")
			case 4:
				if len(tickets) > 0 {
					tickets[0].End(Cost{})
					tickets = tickets[1:]
				}
			default:
				d, ticket := f.Begin(search)
				if len(ruleset) == 0 || len(ruleset[0].Hot) > 0 && !hot {
					if !d.Allowed || ticket != nil {
						t.Fatalf("%+v without a limit", d)
					}
					continue
				}
				l := ruleset[0].Limit
				if len(ruleset[0].Except) > 0 {
					l = ruleset[0].Except[0].Limit
				}
				if !d.Allowed {
					continue
				}
				if !ideal.take(f.now) {
					t.Fatalf("what was taken was forgiven: %+v", d)
				}
				if ticket != nil {
					if tickets = append(tickets, ticket); len(tickets) > l.Concurrency {
						t.Fatalf("%d of %d permits are in use", len(tickets), l.Concurrency)
					}
				}
			}
		}
		for _, ticket := range tickets {
			ticket.End(Cost{})
		}
		full := rules.Rule{ID: "r", Match: match, By: byNames("q"), Limit: limit(3600, 1000)}
		full.Limit.Concurrency = 3
		put([]rules.Rule{full})
		for range 3 {
			if d, ticket := f.Begin(search); !d.Allowed || ticket == nil {
				t.Fatalf("%+v: a permit has leaked", d)
			}
		}
		if s := f.Stats(); s.Panics != 0 || s.Displaced != 0 {
			t.Fatalf("%+v", s)
		}
	})
}

// Requests run while the rules change, with and without hot. None fails, the key takes no more
// than the largest quota allows, and waiting requests are served. Run with -race.
func TestReloadWhileRequestsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, perHour, burst = 4, 36000, 50
		start := time.Now()
		version := func(i int) *rules.Rules {
			r := rules.Rule{ID: "r", Match: rules.Match{Route: parse(t, "GET /s")}, By: byNames("q"), Limit: limit(perHour/int64(i%3+1), burst/int64(i%2+1))}
			r.Limit.Concurrency, r.Limit.Mode, r.Limit.Wait = 1+i%most, rules.ModeWait, time.Minute
			r.Limit.Queue = 1000
			if i%4 < 2 {
				r.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: int64(50 + i%7), Per: []time.Duration{time.Second, time.Minute}[i/8%2]})}
			}
			ruleset := []rules.Rule{r, hotRule(t, fmt.Sprint("other", i%5), "GET /other", byAll, 1, 1)}
			if i%5 == 0 {
				ruleset[0], ruleset[1] = ruleset[1], ruleset[0]
			}
			return &rules.Rules{Namespace: "test", Rules: ruleset}
		}
		rules := version(0)
		f := newFixtureOf(t, *rules, collector.Config{Rules: rules}, WithClock(func() time.Duration { return time.Since(start) }))
		f.heat(t, "r GET /s?q=1")
		var wg sync.WaitGroup
		var serving, highest, passed, refused atomic.Int64
		for range 20 {
			wg.Go(func() {
				for range 30 {
					d, ticket := f.Begin(search)
					if !d.Allowed {
						refused.Add(1)
						continue
					}
					passed.Add(1)
					n := serving.Add(1)
					for {
						was := highest.Load()
						if n <= was || highest.CompareAndSwap(was, n) {
							break
						}
					}
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
					serving.Add(-1)
					ticket.End(Cost{})
				}
			})
		}
		reloads := 0
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(7 * time.Millisecond):
				reloads++
				if err := f.Reload(version(reloads)); err != nil {
					t.Fatal(err)
				}
			}
		}
		took := time.Since(start)
		if limit := burst + int64(took)*perHour/int64(time.Hour) + 1; passed.Load() > limit {
			t.Errorf("%d passed in %v, want at most %d", passed.Load(), took, limit)
		}
		if refused.Load() > 0 || highest.Load() > most || reloads < 10 {
			t.Errorf("%d refused, %d served at a time, of %d; %d reloads", refused.Load(), highest.Load(), most, reloads)
		}
		if s := f.Stats(); s.Panics != 0 || s.Waiting != 0 || s.Displaced != 0 {
			t.Errorf("%+v", s)
		}
		reload(t, f, busyRule(t, "r", byNames("q"), most, 0))
		for range most {
			letIn(t, f, search)
		}
	})
}
