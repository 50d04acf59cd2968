package rules

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// goodRules returns one rule of each kind.
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

var costThreshold = Threshold{Kind: Cost, Rate: CostRate, Exit: Percent(80)}

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
		{"no route", func(r *Rules) { r.Rules[0].Match.Route = Route{} }, "no match"},
		{"no route but a query", func(r *Rules) { r.Rules[0].Match = Match{Query: []QueryMatch{{"q", "*"}}} }, "match.route is missing"},
		{"a secret makes no key", func(r *Rules) { r.Rules[1].By.Names[0].Name = "password" }, "by[0] \"password\""},
		{"the default prefix of another rule", func(r *Rules) { r.Rules[3].Prefix = "Shop_1.terms" }, "rules[1].prefix"},
		{"the marker as an id", func(r *Rules) { r.Rules[1].ID = "hot_param" }, "is between"},
		{"ignore and limit", func(r *Rules) { r.Rules[2].Ignore = true }, "ignore"},
		{"ignore and hot", func(r *Rules) { r.Rules[1].Ignore = true }, "ignore"},
		{"nothing to do", func(r *Rules) { r.Rules[2].Limit = nil }, "does nothing"},
		{"by: the list is empty", func(r *Rules) { r.Rules[1].By.Names = nil }, "by: the list is empty"},
		{"hot without by", func(r *Rules) { r.Rules[1].By = By{} }, "hot needs by"},
		{"ignore and exceptions", func(r *Rules) { r.Rules[4].Ignore = true }, "ignore"},
		{"ignore and count", func(r *Rules) { r.Rules[0].Count = Bytes }, "ignore"},
		{"no such by", func(r *Rules) { r.Rules[1].By.Kind = ByCombinations + 1 }, "by: kind"},
		{"names of all", func(r *Rules) { r.Rules[1].By.Kind = ByAll }, "by: names are for"},
		{"a name twice", func(r *Rules) { r.Rules[1].By.Names = []Param{{Name: "q"}, {Name: "p"}, {Name: "q"}} }, "twice"},
		{"a name with a value", func(r *Rules) { r.Rules[1].By.Names[0].Value = "x" }, "without a value"},
		{"no name", func(r *Rules) { r.Rules[1].By.Names[0].Name = "" }, "a name"},
		{"no such source", func(r *Rules) { r.Rules[1].By.Names[0].Source = sources }, "a source"},
		{"a header in capitals", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Header, Name: "X-Plan"} }, "by[0] \"header:X-Plan\": headers are named in lower case"},
		{"no header", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Header, Name: "x plan"} }, "no header can have this name"},
		{"all cookies", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Header, Name: "cookie"} }, "all cookies"},
		{"no cookie", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Cookie, Name: "a;b"} }, "no cookie can have this name"},
		{"no level", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Addr, Name: "v4/33"} }, "no such level"},
		{"no path of JSON", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: JSON, Name: "a..b"} }, "by[0] \"json:a..b\": a name between two dots is empty"},
		{"a secret of JSON", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: JSON, Name: "user.password"} }, "by[0] \"json:user.password\": the parameter looks secret"},
		{"a secret of a form", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Form, Name: "otp"} }, "by[0] \"form:otp\": the parameter looks secret"},
		{"unread without a body", func(r *Rules) { r.Rules[1].Unread = UnreadPass }, "unread: neither by nor match names a parameter of the body"},
		{"unread of no kind", func(r *Rules) { r.Rules[1].Unread = UnreadReject + 1 }, "unread: 3 is none"},
		{"unread and ignore", func(r *Rules) { r.Rules[0].Unread = UnreadReject }, "an ignore rule"},
		{"a body that is too large", func(r *Rules) { r.Bodies.Max = maxBody + 1 }, "want a size of 1 byte to 64MiB"},
		{"a body below nothing", func(r *Rules) { r.Bodies.Max = -1 }, "bodies.max \"-1\": want a size"},
		{"bodies that one does not fit in", func(r *Rules) { r.Bodies = Bodies{Max: 1000, Total: 999} }, ": want a size of at least bodies.max"},
		{"bodies that the default does not fit in", func(r *Rules) { r.Bodies = Bodies{Total: DefaultMaxBody - 1} }, ": want a size of at least bodies.max"},
		{"bodies below nothing", func(r *Rules) { r.Bodies.Total = -1 }, "bodies.total \"-1\": want a size"},
		{"a secret header", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Header, Name: "authorization"} }, "by[0] \"header:authorization\": the parameter looks secret"},
		{"a secret cookie", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Cookie, Name: "session"} }, "by[0] \"cookie:session\": the parameter looks secret"},
		{"a secret of the context", func(r *Rules) { r.Rules[1].By.Names[0] = Param{Source: Ctx, Name: "jwt"} }, "by[0] \"ctx:jwt\": the parameter looks secret"},
		{"two levels in a key", func(r *Rules) {
			r.Rules[1].By.Names = []Param{{Source: Addr, Name: "ip"}, {Source: Addr, Name: "v6/48"}}
		}, "by[1] \"addr:v6/48\": a key of addr:ip and of another level"},
		{"one level twice", func(r *Rules) {
			r.Rules[3].By.Names = []Param{{Source: Addr, Name: "v4/32"}, {Source: Addr, Name: "ip"}}
		}, "by[1] \"addr:ip\": addr:v4/32 is the same network"},
		{"a match of no level", func(r *Rules) { r.Rules[1].Match.Query = []QueryMatch{{"addr:ip6", "*"}} }, "match.query[0] \"addr:ip6\""},
		{"a match of no name", func(r *Rules) { r.Rules[1].Match.Query = []QueryMatch{{"", "*"}} }, "match.query[0] \"\": the name is empty"},
		{"an exception by a header of all", func(r *Rules) {
			r.Rules[4].By, r.Rules[4].Except[0].Values = By{Kind: ByAll}, []QueryMatch{{"header:x-plan", "x"}}
		}, "those of the query and the path alone"},
		{"trusted without a header", func(r *Rules) { r.Client.TrustUnix = true }, "client.header is missing"},
		{"a header of nobody", func(r *Rules) { r.Client.Header = Forwarded }, "no proxy is trusted"},
		{"no header of clients", func(r *Rules) { r.Client = Client{TrustUnix: true, Header: "x-real-ip"} }, "want x-forwarded-for or forwarded"},
		{"a network with bits behind", func(r *Rules) {
			r.Client = Client{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}, Header: Forwarded}
		}, "client.trusted[0]"},
		{"many networks", func(r *Rules) {
			r.Client = Client{Trusted: slices.Repeat([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, maxTrusted+1), Header: Forwarded}
		}, "client.trusted: 257 networks"},
		{"many names", func(r *Rules) { r.Rules[3].By.Names = append(r.Rules[3].By.Names, Param{Name: "d"}) }, "by: more than 4 names to combine"},
		{"combinations without hot", func(r *Rules) { r.Rules[3].Hot = nil }, "by: combinations are for rules with hot"},
		{"no such unit", func(r *Rules) { r.Rules[2].Count = Units + 1 }, "count: unit 4"},
		{"nothing to count", func(r *Rules) { r.Rules[4].Count = Millis }, "count: the rule has neither hot nor limit"},
		{"many thresholds", func(r *Rules) {
			for i := range maxThresholds {
				r.Rules[3].Hot = append(r.Rules[3].Hot, NewThreshold(Rate{10, time.Duration(i+100) * time.Second}))
			}
		}, "hot: more than 8 thresholds"},
		{"the same window twice", func(r *Rules) { r.Rules[3].Hot[1].Rate.Per = time.Second }, "hot: a second rate over 1s"},
		{"cool-down", func(r *Rules) { r.Rules[1].Hot[0].CoolDown = -1 }, "hot[0].cool_down"},
		{"no such kind", func(r *Rules) { r.Rules[1].Hot[0].Kind = Cost + 1 }, "hot[0].kind"},
		{"a factor of a rate", func(r *Rules) { r.Rules[1].Hot[0].Factor = Percent(20) }, "factor"},
		{"a number of a rate", func(r *Rules) { r.Rules[1].Hot[0].Top = 3 }, "for top"},
		{"no share", func(r *Rules) { r.Rules[3].Hot[2].Factor = Fraction{} }, "hot[2].share"},
		{"more than all", func(r *Rules) { r.Rules[3].Hot[2].Factor = Percent(101) }, "hot[2].share"},
		{"a share of no number", func(r *Rules) { r.Rules[3].Hot[2].Factor = Fraction{1, 0} }, "hot[2].share"},
		{"a share's least count", func(r *Rules) { r.Rules[3].Hot[2].Rate.N = 0 }, "hot[2].min"},
		{"no jump", func(r *Rules) { r.Rules[3].Hot[3].Factor = Percent(100) }, "hot[3].jump"},
		{"a huge jump", func(r *Rules) { r.Rules[3].Hot[3].Factor = Fraction{maxFactor*2 + 1, 2} }, "hot[3].jump"},
		{"no top", func(r *Rules) { r.Rules[3].Hot[4].Top = 0 }, "hot[4].top"},
		{"too many on top", func(r *Rules) { r.Rules[3].Hot[4].Top = MaxTop + 1 }, "hot[4].top"},
		{"a cost of requests", func(r *Rules) { r.Rules[1].Hot[0] = costThreshold }, `count "requests": goes with no hot.cost`},
		{"a cost with a count", func(r *Rules) {
			r.Rules[1].Count, r.Rules[1].Hot[0] = Millis, costThreshold
			r.Rules[1].Hot[0].Rate.N = 2
		}, "hot[0].cost"},
		{"a back end without a cost", func(r *Rules) { r.Rules[1].Backend = "db" }, `backend "db": goes with hot.cost`},
		{"a back end that is no name", func(r *Rules) {
			r.Rules[1].Count, r.Rules[1].Hot[0], r.Rules[1].Backend = Millis, costThreshold, "Orders DB"
		}, `backend "Orders DB": want at most 64 of`},
		{"no number", func(r *Rules) { r.Rules[1].Limit = &Limit{Mode: ModeLimit, Concurrency: AutoConcurrency} }, "only a rule with hot.cost finds its number"},
		{"a number of one instance", func(r *Rules) {
			r.Rules[1].Count, r.Rules[1].Hot[0] = Millis, costThreshold
			r.Rules[1].Limit = &Limit{Mode: ModeLimit, Concurrency: AutoConcurrency, Scope: ScopeInstance}
		}, "concurrency: auto is over all instances"},
		{"a number by priority", func(r *Rules) {
			r.Rules[1].Count, r.Rules[1].Hot[0] = Millis, costThreshold
			r.Rules[1].Limit = &Limit{Mode: ModeLimit, Concurrency: AutoConcurrency, Priority: &Priority{Name: "q", First: []string{"x"}}}
		}, "concurrency: auto is over all instances, and scope: fleet with count: ms goes with neither warm_up nor priority"},
		{"allowed is no effect", func(r *Rules) { r.Rules[4].Except[0].Action = Allow }, "does nothing"},
		{"an exception without values", func(r *Rules) { r.Rules[3].Except[0].Values = nil }, "except[0].values: there are no values"},
		{"no such action", func(r *Rules) { r.Rules[3].Except[1].Action = Block + 1 }, "except[1].action"},
		{"allowed and limited", func(r *Rules) { r.Rules[3].Except[2].Action = Allow }, "except[2].limit: allowed and blocked requests"},
		{"an exception that does nothing", func(r *Rules) { r.Rules[3].Except[0].Action = Adjust }, "except[0]: the exception has neither"},
		{"an exception over another window", func(r *Rules) { r.Rules[3].Except[2].Rate.Per = time.Hour }, "except[2].hot"},
		{"an exception's window of a share", func(r *Rules) { r.Rules[3].Hot = r.Rules[3].Hot[2:] }, "except[2].hot"},
		{"an exception's limit", func(r *Rules) { r.Rules[3].Except[2].Limit.Burst = 0 }, "except[2].limit.burst"},
		{"an exception of another name", func(r *Rules) { r.Rules[3].Except[2].Values[0].Name = "id" }, `except[2].values[0] "id": by does not have`},
		{"an exception of no name", func(r *Rules) { r.Rules[4].Except[0].Values[0].Name = "" }, "except[0].values[0]"},
		{"an exception without by", func(r *Rules) { r.Rules[4].By = By{} }, "the rule has no by"},
		{"an exception of two by each", func(r *Rules) {
			r.Rules[4].Except[0].Values = []QueryMatch{{"q", "x"}, {"p", "y"}}
		}, "one parameter, not 2"},
		{"an exception of four combined", func(r *Rules) {
			r.Rules[3].Except[0].Values = append(r.Rules[3].Except[0].Values, QueryMatch{"c", "*"})
		}, "at most 3 parameters, not 4"},
		{"many exceptions", func(r *Rules) {
			r.Rules[4].Except = slices.Repeat(r.Rules[4].Except, MaxExceptions+1)
		}, "1001 exceptions"},
		{"short window", func(r *Rules) { r.Rules[1].Hot[0].Rate.Per = time.Second - 1 }, "window"},
		{"long window", func(r *Rules) { r.Rules[1].Hot[0].Rate.Per = time.Hour + 1 }, "window"},
		{"no threshold", func(r *Rules) { r.Rules[1].Hot[0].Rate.N = 0 }, "hot[0].rate"},
		{"exit too low", func(r *Rules) { r.Rules[1].Hot[0].Exit = Fraction{} }, "hot[0].exit"},
		{"exit too high", func(r *Rules) { r.Rules[1].Hot[0].Exit = Fraction{201, 200} }, "hot[0].exit"},
		{"hold", func(r *Rules) { r.Rules[1].Hot[0].Hold = -1 }, "hot[0].hold"},
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

// Validate reports all errors at once, each with its path and a hint.
func TestValidateReportsAll(t *testing.T) {
	r := goodRules(t)
	r.Namespace = "a.b"
	r.Rules[1].ID = "health"
	r.Rules[2].Limit.Burst = 0
	r.Rules[3].Hot[2].Factor = Fraction{}
	r.Rules[3].Except[2].Limit.Rate = Rate{}
	var all FieldErrors
	if !errors.As(r.Validate(), &all) {
		t.Fatal("the rules are good")
	}
	var fields []string
	for _, e := range all {
		fields = append(fields, e.Field)
		if e.Hint == "" {
			t.Errorf("%v has no hint", e)
		}
	}
	want := []string{"namespace", "rules[1].id", "rules[2].limit.burst", "rules[3].hot[2].share", "rules[3].except[2].limit.rate"}
	if !slices.Equal(fields, want) {
		t.Errorf("the fields %q are wrong, want %q", fields, want)
	}
	if want := `rule 2 ("health"): id "health" is used twice, first in rules[0].id`; all[1].Error() != want {
		t.Errorf("got  %s\nwant %s", all[1], want)
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
		if u.String() == "" || u.String() == "invalid" {
			t.Errorf("unit %d is named %q", u, u)
		}
	}
	if (Units + 1).String() != "invalid" {
		t.Errorf("a unit that does not exist is named %q", Units+1)
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for r := ReasonNone; r <= ReasonShared; r++ {
		if s := r.String(); s == "" || s == "invalid" || seen[s] {
			t.Errorf("reason %d is named %q", r, s)
		}
		seen[r.String()] = true
	}
	if s := (ReasonShared + 1).String(); s != "invalid" {
		t.Errorf("a reason that does not exist is named %q", s)
	}
}

// The rules of a pool have one home, in every place that chooses one.
func TestPoolHasOneHome(t *testing.T) {
	cost := []Threshold{Threshold{Kind: Cost, Rate: CostRate}.WithDefaults()}
	a, b, other := Rule{ID: "a", Hot: cost, Backend: "db"}, Rule{ID: "b", Hot: cost, Backend: "db"}, Rule{ID: "db", Hot: cost}
	share := Rule{ID: "a", Hot: []Threshold{{Kind: Share}}, Prefix: "x.y"}
	if a.Home("shop") != b.Home("shop") || a.Home("shop") != other.Home("shop") || a.Home("shop") == a.Home("mall") {
		t.Errorf("%q, %q, %q", a.Home("shop"), b.Home("shop"), other.Home("shop"))
	}
	if share.Home("shop") != "x.y" || !share.Whole() || !a.Whole() {
		t.Errorf("%q", share.Home("shop"))
	}
}
