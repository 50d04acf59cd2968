package middleware

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// repeated returns a query with q=0 to q=n-1.
func repeated(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "&q=%d", i)
	}
	return strings.TrimPrefix(b.String(), "&")
}

// Each value of a parameter counts, and a second value hides nothing.
func TestEachValueMakesItsKey(t *testing.T) {
	combined := byNames("q", "page")
	combined.Kind = rules.ByCombinations
	for _, test := range []struct {
		name  string
		by    rules.By
		query string
		want  string // texts, a space between two
	}{
		{"names", byNames("q"), "q=phone&q=7", "q=7 q=phone"},
		{"names, repeated", byNames("q"), "q=7&q=7", "q=7"},
		{"names, decoded", byNames("q"), "q=%41&q=A&q=b", "q=A q=b"},
		{"names, pairings", byNames("q", "page"), "q=a&q=b&page=1&page=2&x=3", "page=1&q=a page=1&q=b page=2&q=a page=2&q=b"},
		{"each", byEach, "q=phone&q=7&q=7", "q=7 q=phone"},
		{"combinations", combined, "q=a&page=1&q=b", "page=1 q=a q=b page=1&q=a page=1&q=b q=a&q=b page=1&q=a&q=b"},
		{"all", byAll, "q=phone&q=7", "q=7&q=phone"},
		{"eight", byNames("q"), repeated(8), "q=0 q=1 q=2 q=3 q=4 q=5 q=6 q=7"},
		{"nine", byNames("q"), repeated(9), "q=0 q=1 q=2 q=3 q=4 q=5 q=6 q=7 ~more"},
		{"each, nine", byEach, repeated(9) + "&x=1", "q=0 q=1 q=2 q=3 q=4 q=5 q=6 x=1 ~more"},
		{"combinations, nine", rules.By{Kind: rules.ByCombinations}, repeated(9) + "&x=1", "q=0 q=1 q=2 q=3 q=4 q=5 q=6 x=1 ~more"},
		{"a value that looks like it", byNames("q"), "q=~more&~more=1&~more", "q=~more"},
		{"a name that looks like it", byEach, "~more&q=1", "q=1 ~more="},
	} {
		for _, hot := range []bool{true, false} {
			rule := hotRule(t, "r", "GET /s", test.by, 1, 1)
			if !hot && test.by.Kind != rules.ByCombinations {
				rule = limitRule(t, "r", "GET /s", test.by, 1, 1)
			}
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			d := f.Check(get("GET /s", "/s", test.query))
			var want []string
			for text := range strings.FieldsSeq(test.want) {
				want = append(want, "r GET /s?"+text)
			}
			slices.Sort(want)
			if len(rule.Hot) > 0 {
				got := f.keyCounts()
				maps.DeleteFunc(got, func(key string, _ int64) bool { return strings.Contains(key, "~again&") })
				if !slices.Equal(slices.Sorted(maps.Keys(got)), want) || slices.Max(slices.Collect(maps.Values(got))) != 1 {
					t.Errorf("%s: %q counts %v, want %q", test.name, test.query, got, want)
				}
			} else if !d.Allowed {
				t.Errorf("%s: %+v", test.name, d)
			}
			more := int64(strings.Count(test.want+" ", "~more "))
			if test.by.Kind == rules.ByNames && strings.Contains(test.query, "~more") {
				more = 0 // it is a value
			}
			if got := f.Stats().More; got != more {
				t.Errorf("%s: %d times more than the keys, want %d", test.name, got, more)
			}
		}
	}
}

// An exception for one value does not affect the others.
func TestEachValueHasItsOwnTerms(t *testing.T) {
	for _, by := range []rules.By{byNames("q"), byEach} {
		rule := hotRule(t, "r", "GET /s", by, 1, 2)
		rule.Except = []rules.Exception{
			{Values: is("q", "free"), Action: rules.Allow},
			{Values: is("q", "evil"), Action: rules.Block},
			{Values: is("q", "vip"), Limit: limit(1, 5)},
		}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		of := func(query string) Request { return get("GET /s", "/s", query) }
		f.heat(t, "r GET /s?q=1", "r GET /s?q=free", "r GET /s?q=vip", "r GET /s?~more")
		if got := tokens(f, of("q=free&q=1")); got != 2 {
			t.Errorf("beside what is allowed %d passed, want the 2 of q=1", got)
		}
		if d := f.Check(of("q=1&q=free&q=evil")); d.Reason != rules.ReasonBlocked {
			t.Errorf("%+v of a request with a value that is blocked", d)
		}
		f.now += 2 * time.Hour // both tokens are back
		if got := tokens(f, of("q=1&q=vip")); got != 2 {
			t.Errorf("%d passed, want the 2 of q=1", got)
		}
		if got := tokens(f, of("q=vip")); got != 5-2 {
			t.Errorf("q=vip has %d left: what q=1 refused was not given back", got)
		}
		if got := tokens(f, of(repeated(9)[len("q=0&q=1&"):]+"&q=a&q=b&q=c")); got != 2 {
			t.Errorf("%d passed with more values than have keys, want the 2 of ~more", got)
		}
		if got := f.keyCounts()["r GET /s?q=free"]; got != 0 {
			t.Errorf("what is allowed was counted %d times", got)
		}
	}
}

// With costs each key of a request is charged, and so is the key for the values beyond the bound.
func TestEachValueIsCharged(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byNames("q"), 100, 100)
	rule.Count = rules.Units
	rule.Hot = append(rule.Hot, rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 100, Per: time.Second}}.WithDefaults())
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	f.heat(t, "r GET /s?q=2", "r GET /s?~more")
	d, ticket := f.Begin(get("GET /s", "/s", repeated(10)))
	if !d.Allowed {
		t.Fatalf("%+v", d)
	}
	ticket.End(Cost{Units: 150})
	got := f.keyCounts()
	want := map[string]int64{"r GET /s?~more": 150, "r GET /s?~again&q": 7 * 150}
	for i := range 8 {
		want[fmt.Sprint("r GET /s?q=", i)] = 150
	}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	for _, query := range []string{"q=2", repeated(8)} {
		if d := f.Check(get("GET /s", "/s", query)); d.Allowed {
			t.Errorf("%s passes, and q=2 has cost more than its burst", query)
		}
	}
	if d := f.Check(get("GET /s", "/s", strings.ReplaceAll(repeated(9), "q=2", "q=x"))); d.Allowed {
		t.Error("more values than have keys pass, and what is beyond has cost more than its burst")
	}
}

// The aggregator adds up keys to requests, for a share and for keys that overlap. Each key of a
// group beyond the first is counted as a repeat, which it subtracts.
func TestARequestIsAddedUpOnce(t *testing.T) {
	share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 100, Per: time.Second}}.WithDefaults()
	combined := rules.By{Kind: rules.ByCombinations}
	long := strings.Repeat("x", 600)
	for _, test := range []struct {
		name  string
		by    rules.By
		hot   rules.Threshold
		query string
		want  map[string]int64 // group → too much
	}{
		{"share, names", byNames("q"), share, "q=1&q=2&q=3", map[string]int64{"q": 2}},
		{"share", byEach, share, "q=1&page=2", nil},
		{"share, allowed", byEach, share, "q=0&q=1", nil},
		{"share, twice", byEach, share, "q=1&q=2&page=1", map[string]int64{"q": 1}},
		{"share, eight", byEach, share, repeated(8), map[string]int64{"q": 6}},
		{"share, more", byEach, share, repeated(20), map[string]int64{"q": 6}},
		{"names", byNames("q"), rules.NewThreshold(rules.Rate{N: 100, Per: time.Second}), "q=1&q=2", nil},
		{"each", byEach, rules.NewThreshold(rules.Rate{N: 100, Per: time.Second}), "q=1&q=2&page=1", map[string]int64{"q": 1}},
		{"each, the same once more", byEach, rules.NewThreshold(rules.Rate{N: 100, Per: time.Second}), "q=1&q=1&page=1", nil},
		{"combinations", combined, rules.NewThreshold(rules.Rate{N: 100, Per: time.Second}), "lang=en&q=1&q=2", map[string]int64{"q": 1, "lang&q": 1}},
		{"cut", byEach, share, "q=" + long + "1&q=" + long + "2&q=1&q=2", map[string]int64{"q": 1}}, // which are of no group
	} {
		rule := hotRule(t, "r", "GET /s", test.by, 0, 0)
		rule.Hot = []rules.Threshold{test.hot}
		rule.Except = []rules.Exception{{Values: is("q", "0"), Action: rules.Allow}}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		f.Check(get("GET /s", "/s", test.query))
		got := make(map[string]int64)
		for key, n := range f.keyCounts() {
			if group, ok := strings.CutPrefix(key, "r GET /s?~again&"); ok {
				got[group] = n
			}
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: %v too much, want %v", test.name, got, test.want)
		}
	}
}

// Values that look secret are counted as withheld, each time that a rule leaves one out.
func TestWithheldIsCounted(t *testing.T) {
	for _, test := range []struct {
		by    rules.By
		query string
		want  int64
	}{
		{byAll, "q=1&page=2", 0},
		{byAll, "q=1&token=2", 1}, // the short way
		{byAll, "q=%41&token=2&%20password=3&user%7Bpassword%7D=4", 3}, // the long way
		{byEach, "q=1&token=2&code=3", 2},
		{rules.By{Kind: rules.ByCombinations}, "q=1&token=2&code=3", 2},
		{byNames("q"), "q=1&token=2", 0}, // no rule reads it
	} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", test.by, 0, 0)}})
		f.Check(get("GET /s", "/s", test.query))
		if got := f.Stats().Withheld; got != test.want {
			t.Errorf("%v of %s: %d were withheld, want %d", test.by.Kind, test.query, got, test.want)
		}
		for key := range f.keyCounts() {
			if strings.Contains(key, "token") || strings.Contains(key, "password") || strings.Contains(key, "code") {
				t.Errorf("%s has left", key)
			}
		}
	}
	// This holds for any source, for a wildcard and for requests that are not HTTP.
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 0, 0), hotRule(t, "job", "job", byEach, 0, 0)}})
	f.Check(get("GET /u/{reset_token}", "/u/abc", ""))
	for source := range rules.RPC + 1 {
		f.Enter(t.Context(), "job", rules.Param{Source: source, Name: "X-Amz-Signature", Value: "abc"})
	}
	for key := range f.keyCounts() {
		if strings.Contains(key, "abc") {
			t.Errorf("%s has left", key)
		}
	}
	if got := f.Stats().Withheld; got != 1+2*int64(rules.RPC+1) {
		t.Errorf("%d were withheld", got)
	}
}
