package hotparam

import (
	"slices"
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
		{ID: "terms", Match: Match{Route: all}, By: By{Kind: ByNames, Names: []Param{{Name: "q"}}}, Hot: []Threshold{NewThreshold(Rate{200, time.Second})}},
		{ID: "whole", Match: Match{Route: all}, Limit: &Limit{Quota: Quota{Rate: Rate{5, time.Second}, Burst: 5}, Mode: ModeLimit}},
		{
			ID: "relative", Match: Match{Route: all}, By: By{Kind: ByCombinations, Names: []Param{{Name: "q"}, {Source: Path, Name: "id"}, {Name: "a:b"}, {Name: "c"}}}, Count: Bytes,
			Hot: []Threshold{
				NewThreshold(Rate{200, time.Second}), NewThreshold(Rate{5000, time.Minute}),
				{Kind: Share, Factor: Percent(20), Rate: Rate{10, time.Second}, Exit: Percent(80)},
				{Kind: Jump, Factor: Fraction{8, 1}, Rate: Rate{10, time.Second}, Exit: Percent(80), Hold: time.Minute, CoolDown: time.Second},
				{Kind: Top, Top: 10, Rate: Rate{10, time.Second}, Exit: Percent(80)},
			},
			Limit: &Limit{Quota: Quota{Rate: Rate{5, time.Second}, Burst: 5}, Mode: ModeShadow},
			Except: []Exception{
				{Values: []QueryMatch{{"q", "phone*"}, {"path:id", "7"}, {"query:a:b", "*"}}, Action: Allow},
				{Values: []QueryMatch{{"a:b", "x"}, {"a:b", "y"}}, Action: Block},
				{Values: []QueryMatch{{"q", "tv"}}, Rate: Rate{9000, time.Minute}, Limit: &Limit{Quota: Quota{Rate: Rate{50, time.Second}, Burst: 5}, Mode: ModeLimit}},
			},
		},
		{ID: "block", Match: Match{Route: all}, By: By{Kind: ByEach}, Except: []Exception{{Values: []QueryMatch{{"q", "x"}}, Action: Block}}},
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
		{"ignore and exceptions", func(r *Rules) { r.Rules[4].Ignore = true }, "ignore"},
		{"ignore and count", func(r *Rules) { r.Rules[0].Count = Bytes }, "ignore"},
		{"no such by", func(r *Rules) { r.Rules[1].By.Kind = ByCombinations + 1 }, "by: kind"},
		{"names of all", func(r *Rules) { r.Rules[1].By.Kind = ByAll }, "by: names are for"},
		{"a name twice", func(r *Rules) { r.Rules[1].By.Names = []Param{{Name: "q"}, {Name: "p"}, {Name: "q"}} }, "twice"},
		{"a name with a value", func(r *Rules) { r.Rules[1].By.Names[0].Value = "x" }, "without a value"},
		{"no name", func(r *Rules) { r.Rules[1].By.Names[0].Name = "" }, "a name"},
		{"no such source", func(r *Rules) { r.Rules[1].By.Names[0].Source = sources }, "a source"},
		{"many names", func(r *Rules) { r.Rules[3].By.Names = append(r.Rules[3].By.Names, Param{Name: "d"}) }, "combined"},
		{"combinations without hot", func(r *Rules) { r.Rules[3].Hot = nil }, "combinations need hot"},
		{"no such unit", func(r *Rules) { r.Rules[2].Count = Units + 1 }, "count: unit 4"},
		{"nothing to count", func(r *Rules) { r.Rules[4].Count = Millis }, "count ms"},
		{"many thresholds", func(r *Rules) {
			for i := range MaxThresholds {
				r.Rules[3].Hot = append(r.Rules[3].Hot, NewThreshold(Rate{10, time.Duration(i+100) * time.Second}))
			}
		}, "13 thresholds"},
		{"the same window twice", func(r *Rules) { r.Rules[3].Hot[1].Rate.Per = time.Second }, "same kind over 1s"},
		{"cool-down", func(r *Rules) { r.Rules[1].Hot[0].CoolDown = -1 }, "hot.cool_down"},
		{"no such kind", func(r *Rules) { r.Rules[1].Hot[0].Kind = Top + 1 }, "hot kind"},
		{"a factor of a rate", func(r *Rules) { r.Rules[1].Hot[0].Factor = Percent(20) }, "factor"},
		{"a number of a rate", func(r *Rules) { r.Rules[1].Hot[0].Top = 3 }, "for top"},
		{"no share", func(r *Rules) { r.Rules[3].Hot[2].Factor = Fraction{} }, "hot.share"},
		{"more than all", func(r *Rules) { r.Rules[3].Hot[2].Factor = Percent(101) }, "hot.share"},
		{"a share of no number", func(r *Rules) { r.Rules[3].Hot[2].Factor = Fraction{1, 0} }, "hot.share"},
		{"a share's least count", func(r *Rules) { r.Rules[3].Hot[2].Rate.N = 0 }, "hot.min"},
		{"no jump", func(r *Rules) { r.Rules[3].Hot[3].Factor = Percent(100) }, "hot.jump"},
		{"a huge jump", func(r *Rules) { r.Rules[3].Hot[3].Factor = Fraction{MaxFactor*2 + 1, 2} }, "hot.jump"},
		{"no top", func(r *Rules) { r.Rules[3].Hot[4].Top = 0 }, "hot.top"},
		{"too many on top", func(r *Rules) { r.Rules[3].Hot[4].Top = MaxTop + 1 }, "hot.top"},
		{"allowed is no effect", func(r *Rules) { r.Rules[4].Except[0].Action = Allow }, "does nothing"},
		{"an exception without values", func(r *Rules) { r.Rules[3].Except[0].Values = nil }, "exception 1: no values"},
		{"no such action", func(r *Rules) { r.Rules[3].Except[1].Action = Block + 1 }, "exception 2: action"},
		{"allowed and limited", func(r *Rules) { r.Rules[3].Except[2].Action = Allow }, "exception 3: to allow or block"},
		{"an exception that does nothing", func(r *Rules) { r.Rules[3].Except[0].Action = Adjust }, "exception 1: neither"},
		{"an exception over another window", func(r *Rules) { r.Rules[3].Except[2].Rate.Per = time.Hour }, "no absolute threshold"},
		{"an exception's window of a share", func(r *Rules) { r.Rules[3].Hot = r.Rules[3].Hot[2:] }, "no absolute threshold"},
		{"an exception's limit", func(r *Rules) { r.Rules[3].Except[2].Limit.Burst = 0 }, "exception 3: limit.burst"},
		{"an exception of another name", func(r *Rules) { r.Rules[3].Except[2].Values[0].Name = "id" }, `"id" is none of the names`},
		{"an exception of no name", func(r *Rules) { r.Rules[4].Except[0].Values[0].Name = "" }, "no name"},
		{"an exception without by", func(r *Rules) { r.Rules[4].By = By{} }, "needs by"},
		{"an exception of two by each", func(r *Rules) {
			r.Rules[4].Except[0].Values = []QueryMatch{{"q", "x"}, {"p", "y"}}
		}, "2 parameters"},
		{"an exception of four combined", func(r *Rules) {
			r.Rules[3].Except[0].Values = append(r.Rules[3].Except[0].Values, QueryMatch{"c", "*"})
		}, "4 parameters"},
		{"many exceptions", func(r *Rules) {
			r.Rules[4].Except = slices.Repeat(r.Rules[4].Except, MaxExceptions+1)
		}, "1001 exceptions"},
		{"short window", func(r *Rules) { r.Rules[1].Hot[0].Rate.Per = time.Second - 1 }, "window"},
		{"long window", func(r *Rules) { r.Rules[1].Hot[0].Rate.Per = time.Hour + 1 }, "window"},
		{"no threshold", func(r *Rules) { r.Rules[1].Hot[0].Rate.N = 0 }, "hot.rate"},
		{"exit too low", func(r *Rules) { r.Rules[1].Hot[0].Exit = Fraction{} }, "hot.exit"},
		{"exit too high", func(r *Rules) { r.Rules[1].Hot[0].Exit = Fraction{201, 200} }, "hot.exit"},
		{"hold", func(r *Rules) { r.Rules[1].Hot[0].Hold = -1 }, "hot.hold"},
		{"no rate", func(r *Rules) { r.Rules[2].Limit.Rate = Rate{} }, "limit.rate"},
		{"rate too high", func(r *Rules) { r.Rules[2].Limit.Rate.N = MaxRate + 1 }, "limit.rate"},
		{"no burst", func(r *Rules) { r.Rules[2].Limit.Burst = 0 }, "limit.burst"},
		{"huge burst", func(r *Rules) { r.Rules[2].Limit.Burst = 1 << 62 }, "limit.burst"},
		{"mode", func(r *Rules) { r.Rules[2].Limit.Mode = ModeWatch }, "limit.on_limit"},
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
	r := goodRules(t)
	if w := r.Windows(); len(w) != 6 || w[0] != NewWindow(time.Second) || w[2] != NewWindow(time.Minute) {
		t.Errorf("windows %+v", w)
	}
	r.Rules = r.Rules[2:3]
	if w := r.Windows(); len(w) != 0 {
		t.Errorf("windows %+v of a rule without hot", w)
	}
}

func TestExitCount(t *testing.T) {
	for _, test := range []struct {
		threshold int64
		exit      Fraction
		want      int64
	}{
		{200, Percent(80), 160}, {10, Percent(70), 7}, {5, Percent(80), 4}, {1, Percent(80), 1}, {3, Percent(50), 2}, {1, Percent(1), 1},
		{100, Percent(100), 100}, {1000, Fraction{29, 1000}, 29}, {7, Fraction{1, 1000}, 1}, {1000, Fraction{2, 3}, 667},
	} {
		h := Threshold{Rate: Rate{test.threshold, time.Second}, Exit: test.exit}
		if got := h.ExitCount(test.threshold); got != test.want {
			t.Errorf("%v of %d is %d, want %d", test.exit, test.threshold, got, test.want)
		}
	}
}

func TestNewThresholdIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{rapid.Int64Range(1, 1_000_000).Draw(t, "n"), anyWindow().Draw(t, "per")}
		h := NewThreshold(r)
		if exit := h.ExitCount(r.N); exit < 1 || exit > r.N || h.Hold != DefaultHold || h.Window() != NewWindow(r.Per) {
			t.Fatalf("%v makes %+v", r, h)
		}
	})
}

func TestUnitsHaveNames(t *testing.T) {
	for u := Requests; u <= Units; u++ {
		if got, ok := ParseUnit(u.String()); !ok || got != u {
			t.Errorf("unit %d is named %q, which is read as %d, %v", u, u, got, ok)
		}
	}
	if u, ok := ParseUnit("byte"); ok || u != Requests || (Units+1).String() != "invalid" {
		t.Errorf("a unit that does not exist is %v, %v, or is named %q", u, ok, Units+1)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for r := ReasonNone; r <= ReasonAway; r++ {
		if s := r.String(); s == "" || s == "invalid" || seen[s] {
			t.Errorf("reason %d is named %q", r, s)
		}
		seen[r.String()] = true
	}
	if s := (ReasonAway + 1).String(); s != "invalid" {
		t.Errorf("a reason that does not exist is named %q", s)
	}
}
