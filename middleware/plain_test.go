package middleware

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam"
)

// The short way and the long one decide and count the same.
func TestPlainIsCheck(t *testing.T) {
	plain, hot := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rule := hotRule(t, "r", "GET /s", rapid.SampledFrom([]hotparam.By{byAll, byNames("q"), byNames("b", "q", "path:id")}).Draw(rt, "by"), 1, 2)
		rule.ParamsOnly = rapid.Bool().Draw(rt, "params only")
		if rapid.Bool().Draw(rt, "watch") {
			rule.Limit = nil
		}
		rules := hotparam.Rules{Rules: []hotparam.Rule{rule}}
		short, long := newFixture(rt, rules), newFixture(rt, rules)
		piece := rapid.SampledFrom([]string{"q=1", "q=2", "b=x", "q", "=", "b=%41", "token=1", "user.password=1", "c=" + strings.Repeat("y", 30), ""})
		query := rapid.Map(rapid.SliceOfN(piece, 0, 5), func(p []string) string { return strings.Join(p, "&") })
		queries := rapid.SliceOfN(query, 1, 4).Draw(rt, "queries")
		for i := range 8 {
			req := get("GET /s", "/s", queries[i%len(queries)])
			var want hotparam.Decision
			long.checkAny(long.routeOf(&req), &req, false, &want)
			if got := ofLimits(rt, short.Check(req)); got != ofLimits(rt, want) {
				rt.Fatalf("%q: %+v, want %+v", req.Query, got, want)
			}
			if _, done := short.checkPlain(short.routeOf(&req), &req, false, new(hotparam.Decision)); done {
				plain++
				long.checkAny(long.routeOf(&req), &req, false, new(hotparam.Decision))
			}
			if want.Reason == hotparam.ReasonLimited {
				hot++
			}
			got, counted := short.counted(), long.counted()
			if !maps.Equal(got, counted) {
				rt.Fatalf("%q: counted %v, want %v", req.Query, got, counted)
			}
			var heat []hotparam.Hot
			for member := range counted {
				key, _ := hotparam.ParseKey(member)
				heat = append(heat, hotparam.Hot{Key: key})
			}
			short.HotSet().Update("", hotparam.Change{Hot: heat})
			long.HotSet().Update("", hotparam.Change{Hot: heat})
		}
		if short.Stats() != long.Stats() {
			rt.Fatalf("%+v, want %+v", short.Stats(), long.Stats())
		}
	})
	if !testing.Short() && (plain == 0 || hot == 0) {
		t.Errorf("%d plain, %d refused: the test tests too little", plain, hot)
	}
}

// Which routes go the short way.
func TestWhatIsPlain(t *testing.T) {
	hot := hotRule(t, "hot", "GET /s", byAll, 1, 1)
	query, cost, except, each := hot, hot, hot, hot
	query.Match.Query = is("q", "*")
	cost.Count = hotparam.Bytes
	except.Except = []hotparam.Exception{{Values: is("q", "1"), Action: hotparam.Allow}}
	each.By = byEach
	for name, c := range map[string]struct {
		rules []hotparam.Rule
		req   Request
		want  bool
	}{
		"all":         {[]hotparam.Rule{hot}, search, true},
		"names":       {[]hotparam.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 1)}, search, true},
		"any route":   {[]hotparam.Rule{hotRule(t, "r", "*", byAll, 1, 1)}, search, true},
		"beside":      {[]hotparam.Rule{hot, limitRule(t, "r", "GET /t", byAll, 1, 1)}, search, true},
		"path values": {[]hotparam.Rule{hotRule(t, "r", "GET /u/{id}", byAll, 1, 1)}, get("GET /u/{id}", "/u/1", ""), false},
		"unknown":     {[]hotparam.Rule{hotRule(t, "r", "*", byAll, 1, 1)}, get("", "/s", "q=1"), false},
		"no hot":      {[]hotparam.Rule{limitRule(t, "r", "GET /s", byAll, 1, 1)}, search, false},
		"two":         {[]hotparam.Rule{hot, limitRule(t, "r", "*", hotparam.By{}, 1, 1)}, search, false},
		"ignored":     {[]hotparam.Rule{ignoreRule(t, "r", "GET /s")}, search, false},
		"query":       {[]hotparam.Rule{query}, search, false},
		"cost":        {[]hotparam.Rule{cost}, search, false},
		"exceptions":  {[]hotparam.Rule{except}, search, false},
		"each":        {[]hotparam.Rule{each}, search, false},
	} {
		f := newFixture(t, hotparam.Rules{Rules: c.rules})
		if got := f.routeOf(&c.req).plain != nil; got != c.want {
			t.Errorf("%s: plain is %v", name, got)
		}
	}
}
