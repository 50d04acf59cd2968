package hotparam

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// goodRules are one rule of each kind.
func goodRules(t testing.TB) *Rules {
	all, health := mustRoute(t, "*"), mustRoute(t, "GET /healthz")
	return &Rules{Namespace: "Shop_1", Rules: []Rule{
		{ID: "health", Match: Match{Route: health}, Ignore: true},
		{ID: "terms", Match: Match{Route: all}, By: By{Kind: ByNames, Names: []Param{{Name: "q"}}}, Hot: NewThreshold(Rate{200, time.Second})},
		{ID: "whole", Match: Match{Route: all}, Limit: &Limit{Rate: Rate{5, time.Second}, Burst: 5, Mode: ModeLimit}},
	}}
}

func TestValidate(t *testing.T) {
	if err := goodRules(t).Validate(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		spoil func(r *Rules)
		want  string
	}{
		{"namespace", func(r *Rules) { r.Namespace = "a.b" }, "namespace"},
		{"no namespace", func(r *Rules) { r.Namespace = "" }, "namespace"},
		{"id", func(r *Rules) { r.Rules[1].ID = "Terms" }, "rule 2"},
		{"long id", func(r *Rules) { r.Rules[1].ID = strings.Repeat("a", 65) }, "rule 2"},
		{"id used twice", func(r *Rules) { r.Rules[2].ID = "terms" }, "twice"},
		{"no route", func(r *Rules) { r.Rules[0].Match.Route = Route{} }, "match.route"},
		{"ignore and limit", func(r *Rules) { r.Rules[2].Ignore = true }, "ignore"},
		{"ignore and hot", func(r *Rules) { r.Rules[1].Ignore = true }, "ignore"},
		{"nothing to do", func(r *Rules) { r.Rules[2].Limit = nil }, "does nothing"},
		{"no names", func(r *Rules) { r.Rules[1].By.Names = nil }, "no names"},
		{"hot without by", func(r *Rules) { r.Rules[1].By = By{} }, "hot needs by"},
		{"short window", func(r *Rules) { r.Rules[1].Hot.Rate.Per = time.Second - 1 }, "window"},
		{"long window", func(r *Rules) { r.Rules[1].Hot.Rate.Per = time.Hour + 1 }, "window"},
		{"no threshold", func(r *Rules) { r.Rules[1].Hot.Rate.N = 0 }, "hot.rate"},
		{"exit too low", func(r *Rules) { r.Rules[1].Hot.Exit = 0 }, "hot.exit"},
		{"exit too high", func(r *Rules) { r.Rules[1].Hot.Exit = 201 }, "hot.exit"},
		{"hold", func(r *Rules) { r.Rules[1].Hot.Hold = -1 }, "hot.hold"},
		{"no rate", func(r *Rules) { r.Rules[2].Limit.Rate = Rate{} }, "limit.rate"},
		{"rate too high", func(r *Rules) { r.Rules[2].Limit.Rate.N = MaxRate + 1 }, "limit.rate"},
		{"no burst", func(r *Rules) { r.Rules[2].Limit.Burst = 0 }, "limit.burst"},
		{"huge burst", func(r *Rules) { r.Rules[2].Limit.Burst = 1 << 62 }, "limit.burst"},
		{"mode", func(r *Rules) { r.Rules[2].Limit.Mode = ModeWatch }, "limit mode"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := goodRules(t)
			test.spoil(r)
			if err := r.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Validate gives %v, want an error about %s", err, test.want)
			}
		})
	}
}

func TestWindowsAreThoseOfHotRules(t *testing.T) {
	if w := goodRules(t).Windows(); len(w) != 1 || w[0] != NewWindow(time.Second) {
		t.Errorf("windows %+v", w)
	}
}

func TestExitCount(t *testing.T) {
	for _, test := range []struct {
		threshold int64
		share     float64
		want      int64
	}{
		{200, 0.8, 160}, {10, 0.7, 7}, {5, 0.8, 4}, {1, 0.8, 1}, {3, 0.5, 2}, {1, 0.01, 1}, {100, 1, 100}, {1000, 0.029, 29}, {7, 0, 1},
	} {
		if got := ExitCount(test.threshold, test.share); got != test.want {
			t.Errorf("ExitCount(%d, %v) is %d, want %d", test.threshold, test.share, got, test.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.Int64Range(1, 1_000_000).Draw(t, "threshold")
		percent := rapid.Int64Range(0, 100).Draw(t, "percent")
		want := max(1, (threshold*percent+99)/100)
		if got := ExitCount(threshold, float64(percent)/100); got != want {
			t.Fatalf("%d%% of %d is %d, want %d", percent, threshold, got, want)
		}
	})
}

func TestNewThresholdIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{rapid.Int64Range(1, 1_000_000).Draw(t, "n"), anyWindow().Draw(t, "per")}
		h := NewThreshold(r)
		if h.Exit < 1 || h.Exit > r.N || h.Hold != DefaultHold || h.Window() != NewWindow(r.Per) {
			t.Fatalf("%v makes %+v", r, h)
		}
	})
}

func TestReasonsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for r := ReasonNone; r <= ReasonOpen; r++ {
		if s := r.String(); s == "" || s == "invalid" || seen[s] {
			t.Errorf("reason %d is named %q", r, s)
		}
		seen[r.String()] = true
	}
	if s := (ReasonOpen + 1).String(); s != "invalid" {
		t.Errorf("a reason that does not exist is named %q", s)
	}
}
