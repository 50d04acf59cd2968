package middleware

import (
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// The fast path and the full one decide and count the same.
func TestPlainIsCheck(t *testing.T) {
	plain, hot := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		rule := hotRule(t, "r", "GET /s", rapid.SampledFrom([]rules.By{byAll, byNames("q"), byNames("b", "q", "path:id")}).Draw(rt, "by"), 1, 2)
		rule.ParamsOnly = rapid.Bool().Draw(rt, "params only")
		rule.Limit = drawLimit(rt)
		ruleset := rules.Rules{Rules: []rules.Rule{rule}}
		opts := []Option{WithoutWaiting()}
		if rapid.IntRange(0, 3).Draw(rt, "shadow") == 0 {
			opts = append(opts, WithShadow())
		}
		if rapid.IntRange(0, 3).Draw(rt, "limited") == 0 {
			opts = append(opts, WithLimited(func(http.ResponseWriter, *http.Request, rules.Decision) {}))
		}
		short, long := newFixture(rt, ruleset, opts...), newFixture(rt, ruleset, opts...)
		piece := rapid.SampledFrom([]string{"q=1", "q=2", "b=x", "q", "=", "b=%41", "token=1", "user.password=1", "c=" + strings.Repeat("y", 30), ""})
		query := rapid.Map(rapid.SliceOfN(piece, 0, 5), func(p []string) string { return strings.Join(p, "&") })
		queries := rapid.SliceOfN(query, 1, 4).Draw(rt, "queries")
		for i := range 8 {
			req := get("GET /s", "/s", queries[i%len(queries)])
			var want rules.Decision
			long.checkAny(long.routeOf(&req), &req, false, &want)
			got := short.Check(req)
			if (got.From == nil) != (want.From == nil) || reflect.TypeOf(got.From) != reflect.TypeOf(want.From) {
				rt.Fatalf("%q: answered by %T, want %T", req.Query, got.From, want.From)
			}
			got.From, want.From = nil, nil
			if got != want {
				rt.Fatalf("%q: %+v, want %+v", req.Query, got, want)
			}
			if _, done := short.checkPlain(short.routeOf(&req), &req, false, new(rules.Decision)); done {
				plain++
				long.checkAny(long.routeOf(&req), &req, false, new(rules.Decision))
			}
			if want.Reason == rules.ReasonLimited {
				hot++
			}
			shortCounted, counted := short.keyCounts(), long.keyCounts()
			if !maps.Equal(shortCounted, counted) {
				rt.Fatalf("%q: counted %v, want %v", req.Query, shortCounted, counted)
			}
			var heat []published.Hot
			for member := range counted {
				key, _ := rules.ParseKey(member)
				heat = append(heat, published.Hot{Key: key, Spared: i == 5})
			}
			if pass := time.Duration(rapid.IntRange(-1, 3).Draw(rt, "seconds")) * 7 * time.Second; i%2 == 0 {
				short.now, long.now = short.now+pass, long.now+pass
			}
			if i == 3 {
				n := rapid.IntRange(0, 2).Draw(rt, "instances")
				short.SetInstances(n)
				long.SetInstances(n)
			}
			short.HotSet().Update("", published.Change{Hot: heat})
			long.HotSet().Update("", published.Change{Hot: heat})
		}
		if short.Stats() != long.Stats() {
			rt.Fatalf("%+v, want %+v", short.Stats(), long.Stats())
		}
		if got, want := short.RuleStats(), long.RuleStats(); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v, want %+v", got, want)
		}
		if got, want := short.HotKeys(), long.HotKeys(); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v, want %+v", got, want)
		}
	})
	if !testing.Short() && (plain == 0 || hot == 0) {
		t.Errorf("%d plain, %d refused: the test tests too little", plain, hot)
	}
}

// drawLimit draws a limit of any kind, or none. The hourly rates are low enough for refusals, and
// high enough that no retry is so late that its time is drawn at random.
func drawLimit(rt *rapid.T) *rules.Limit {
	l := limit(rapid.Int64Range(150, 900).Draw(rt, "per hour"), rapid.Int64Range(1, 2).Draw(rt, "burst"))
	switch rapid.SampledFrom([]string{"plain", "plain", "none", "leaky", "queue", "wait", "window", "penalty", "priority", "shadow", "serve", "share", "missing", "unlimited", "one at a time"}).Draw(rt, "limit") {
	case "none":
		return nil
	case "queue":
		l.Algorithm, l.Shape, l.Mode, l.Wait = rules.LeakyBucket, true, rules.ModeWait, 10*time.Minute
	case "leaky":
		l.Algorithm = rules.LeakyBucket
	case "wait":
		l.Mode, l.Wait = rules.ModeWait, 10*time.Minute
	case "window":
		l.Algorithm, l.Rate, l.Burst = rules.SlidingLog, rules.Rate{N: 2, Per: time.Minute}, 2
	case "penalty":
		l.Penalty = 10 * time.Second
	case "priority":
		l.Priority = &rules.Priority{Name: "q", First: []string{"1"}}
	case "shadow":
		l.Mode = rules.ModeShadow
	case "serve":
		l.Mode, l.Serve = rules.ModeServe, &rules.Response{Status: 200, Body: "later"}
	case "share":
		l.Scope = rules.ScopeShare
	case "missing":
		l.Missing = 1
	case "unlimited":
		l.Burst = rules.Unlimited
	case "one at a time":
		l.Concurrency = 1
	}
	return l
}

// These routes take the fast path.
func TestWhatIsPlain(t *testing.T) {
	hot := hotRule(t, "hot", "GET /s", byAll, 1, 1)
	query, cost, except, each := hot, hot, hot, hot
	query.Match.Query = is("q", "*")
	cost.Count = rules.Bytes
	except.Except = []rules.Exception{{Values: is("q", "1"), Action: rules.Allow}}
	each.By = byEach
	for name, c := range map[string]struct {
		rules []rules.Rule
		req   Request
		want  bool
	}{
		"all":         {[]rules.Rule{hot}, search, true},
		"names":       {[]rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 1, 1)}, search, true},
		"any route":   {[]rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}, search, true},
		"beside":      {[]rules.Rule{hot, limitRule(t, "r", "GET /t", byAll, 1, 1)}, search, true},
		"path values": {[]rules.Rule{hotRule(t, "r", "GET /u/{id}", byAll, 1, 1)}, get("GET /u/{id}", "/u/1", ""), false},
		"unknown":     {[]rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}, get("", "/s", "q=1"), false},
		"no hot":      {[]rules.Rule{limitRule(t, "r", "GET /s", byAll, 1, 1)}, search, false},
		"two":         {[]rules.Rule{hot, limitRule(t, "r", "*", rules.By{}, 1, 1)}, search, false},
		"ignored":     {[]rules.Rule{ignoreRule(t, "r", "GET /s")}, search, false},
		"query":       {[]rules.Rule{query}, search, false},
		"cost":        {[]rules.Rule{cost}, search, false},
		"exceptions":  {[]rules.Rule{except}, search, false},
		"each":        {[]rules.Rule{each}, search, false},
	} {
		f := newFixture(t, rules.Rules{Rules: c.rules})
		if got := f.routeOf(&c.req).plain != nil; got != c.want {
			t.Errorf("%s: plain is %v", name, got)
		}
	}
}
