package middleware

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func shareRule(tb testing.TB, id string, by rules.By, perHour, burst int64) rules.Rule {
	tb.Helper()
	r := limitRule(tb, id, "*", by, perHour, burst)
	r.Limit.Scope = rules.ScopeShare
	return r
}

// Each instance has its part of a shared limit from the moment that it receives the number of
// instances, and used tokens stay used.
func TestShare(t *testing.T) {
	hot := shareRule(t, "r", byNames("q"), 60, 12)
	hot.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
	for name, rule := range map[string]rules.Rule{
		"single": shareRule(t, "r", rules.By{}, 60, 12), "keyed": shareRule(t, "r", byNames("q"), 60, 12), "hot": hot,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			if name == "hot" {
				f.heat(t, "r GET /s?q=1")
			}
			passes := func() (n int) {
				for f.Check(search).Allowed {
					n++
				}
				return n
			}
			for range 2 {
				f.Check(search)
			}
			f.SetInstances(3)
			if n := passes(); n != 2 { // 4 is the part, 2 are taken
				t.Errorf("%d passed, want 2", n)
			}
			f.now += 6 * time.Minute // at a third of a token a minute
			if n := passes(); n != 2 {
				t.Errorf("%d passed, want 2", n)
			}
			f.SetInstances(1) // others may have used their parts
			if n := passes(); n != 0 {
				t.Errorf("%d passed, want none", n)
			}
			f.now += 12 * time.Minute
			if n := passes(); n != 12 {
				t.Errorf("%d passed, want 12", n)
			}
			f.now += 12 * time.Minute
			f.SetInstances(3)
			f.SetInstances(0) // not known
			if n := passes(); n != 12 {
				t.Errorf("%d passed after a joiner came and left, want 12", n)
			}
			f.SetInstances(-5)
		})
	}
}

// Each instance has at least one permit, and logs once that its part is below that.
func TestShareBelowOne(t *testing.T) {
	var log bytes.Buffer
	busy := busyRule(t, "busy", rules.By{}, 2, 0)
	busy.Limit.Scope = rules.ScopeShare
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{shareRule(t, "few", rules.By{}, 60, 3), shareRule(t, "many", rules.By{}, 60, 30), busy}},
		WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	for _, n := range []int{2, 5, 1, 5, 6} {
		f.SetInstances(n)
	}
	for _, rule := range []string{"few", "busy"} {
		if n := strings.Count(log.String(), "rule="+rule); n != 1 {
			t.Errorf("%d warnings of %s:\n%s", n, rule, &log)
		}
	}
	if strings.Contains(log.String(), "many") {
		t.Error(log.String())
	}
	reload(t, f, shareRule(t, "few", rules.By{}, 60, 3), shareRule(t, "fresh", rules.By{}, 60, 3))
	if n := strings.Count(log.String(), "rule=fresh"); n != 1 || strings.Count(log.String(), "rule=few") != 1 {
		t.Errorf("%d warnings of a new rule:\n%s", n, &log)
	}
	f.Check(search)
	if d, _ := f.Begin(search); d.Allowed || d.RetryAfter != 6*time.Minute { // 60 an hour, of six
		t.Errorf("%+v", d)
	}
}
