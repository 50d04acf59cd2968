//go:build !race

package middleware

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// A middleware that only limits allocates nothing for a request that passes.
func TestLimitDoesNotAllocate(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	w := httptest.NewRecorder()
	for _, by := range []string{"", "addr:ip", "header:x-api-key", "form:user", "q"} {
		h := Limit(limiter.PerSecond(1_000_000), by)(next)
		r := asked("/s?q=1&user=ann", "192.0.2.1:1", "X-Api-Key", "k")
		if n := testing.AllocsPerRun(500, func() { h.ServeHTTP(w, r) }); n != 0 {
			t.Errorf("by %q: %v allocations", by, n)
		}
	}
}

// The request path must not allocate. (Under the race detector the pool drops its contents, so
// there is nothing to measure.)
func TestCheckDoesNotAllocate(t *testing.T) {
	allocs := func(name string, f *fixture, req Request) {
		t.Helper()
		if n := testing.AllocsPerRun(500, func() { f.Check(req) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for _, c := range benchCases {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", c.rule, c.by, 3600, 1)}})
		req := get(c.pattern, c.path, fmt.Sprintf(c.query, 7))
		allocs(c.name, f, req)
		members := f.keys()
		if len(members) == 0 {
			t.Fatalf("%s makes no key", c.name)
		}
		f.heat(t, members...)
		allocs(c.name+", hot", f, req)
		if f.Stats().Limited == 0 {
			t.Errorf("%s is not hot", c.name)
		}
		f = newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", c.rule, c.by, 3600, 1e6)}})
		f.heat(t, members...)
		allocs(c.name+", hot, within its limit", f, req)
		if keys := f.HotKeys(); keys[0].Passed == 0 || f.Stats().Limited > 0 {
			t.Errorf("%s is not within its limit: %+v", c.name, keys)
		}
	}
	for _, c := range sourceCases {
		user := "ann"
		f := sourceFixture(t, c.by, &user)
		r, values := sourceValues(c.name)
		c.set(r, values[7])
		req := get("GET /search", "/search", "q=1&b=2")
		req.HTTP = r
		allocs(c.name, f, req)
		members := f.keys()
		if len(members) != 1 || !strings.HasPrefix(members[0], "r GET /search?") {
			t.Fatalf("%s makes the keys %q", c.name, members)
		}
		f.heat(t, members...)
		allocs(c.name+", hot", f, req)
		if f.Stats().Limited == 0 {
			t.Errorf("%s is not hot", c.name)
		}
	}
	// Controls cost no allocation, whether they match the request's key or another one.
	for _, action := range []string{"block", "allow", "pin"} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /s", byNames("q"), 3600, 1), hotRule(t, "each", "GET /s", byEach, 3600, 1)}})
		f.heat(t, "r GET /s?q=1", "each GET /s?q=1", "each GET /s?q=2")
		f.control(t, [2]string{action, "r GET /s?q=1"}, [2]string{action, "each GET /s?q=1"})
		allocs(action, f, ofQ("1"))
		allocs(action+" of another", f, ofQ("2"))
		allocs(action+" of one of two", f, ofQ("1&q=2"))
	}
	// Rules that read bodies cost no allocation if there is no body to read.
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "login", "POST /login", byNames("form:user", "json:user"), 3600, 1), hotRule(t, "q", "GET /search", byNames("q"), 3600, 1),
		hotRule(t, "any", "*", byNames("form:user"), 3600, 1), hotRule(t, "json", "GET /none", byNames("json:user"), 3600, 1),
	}})
	for _, contentType := range []string{"", "text/plain", "application/json"} {
		req, _ := post(contentType, "user=ann")
		req.Pattern, req.Path, req.Query = "GET /search", "/search", "q=1"
		allocs("no body to read, "+contentType, f, req)
	}
	if len(f.keys()) == 0 || f.Stats().Bodies > 0 {
		t.Errorf("%+v", f.Stats())
	}
	named := byNames("q", "b")
	named.Kind = rules.ByCombinations
	for name, by := range map[string]rules.By{"combinations": {Kind: rules.ByCombinations}, "combinations of names": named, "each": byEach, "all": byAll} {
		rule := hotRule(t, "r", "GET /s", by, 3600, 1)
		rule.Except = []rules.Exception{
			{Values: is("q", "free"), Action: rules.Allow}, {Values: is("q", "evil*"), Action: rules.Block}, {Values: is("q", "v*p"), Limit: limit(3600, 2)},
		}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		for _, q := range []string{"1", "free", "evil", "vip", "%76ip"} {
			req := get("GET /s", "/s", "q="+q+"&b=2&c=3&d=4&e=5")
			allocs(name+" with exceptions, "+q, f, req)
			f.heat(t, f.keys()...)
			allocs(name+" with exceptions, hot, "+q, f, req)
		}
	}
	shared := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 100, Per: time.Second}}.WithDefaults()
	for name, by := range map[string]rules.By{"combinations": {Kind: rules.ByCombinations}, "each": byEach, "names": byNames("q", "b")} {
		rule := hotRule(t, "r", "GET /s", by, 3600, 1)
		for _, shares := range []bool{false, true} {
			if shares {
				rule.Hot = append(rule.Hot, shared)
			}
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			for _, query := range []string{"q=1&q=2&b=1", "b=1&b=2&b=3&b=4&q=1&q=2&q=3&token=7", "q=%41&q=b&q=c&q=d&q=e&q=f&q=g&q=h&q=i&q=j"} {
				req := get("GET /s", "/s", query)
				allocs(name+" of "+query, f, req)
				f.heat(t, f.keys()...)
				allocs(name+" of "+query+", hot", f, req)
			}
		}
	}
	cost := hotRule(t, "r", "GET /s", byNames("q"), 3600, 1)
	cost.Count = rules.Units
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{cost}})
	req := get("GET /s", "/s", "q=1")
	if n := testing.AllocsPerRun(500, func() {
		_, ticket := f.Begin(req)
		ticket.End(Cost{Units: 2})
	}); n != 0 {
		t.Errorf("costs: %v allocations", n)
	}
	h, r := timedHandler(t, false)
	if n := testing.AllocsPerRun(500, func() { h.ServeHTTP(nil, r) }); n != 0 {
		t.Errorf("time: %v allocations", n)
	}
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{
		limitRule(t, "one", "*", rules.By{}, 1, 1000), limitRule(t, "keys", "*", byEach, 1, 400), hotRule(t, "h", "*", byAll, 0, 0),
	}})
	allocs("limits, some of them of keys", f, get("GET /s", "/s", "q=1&b=2"))
	first := limitRule(t, "first", "*", byEach, 1, 1000)
	first.Limit.Priority = &rules.Priority{Name: "q", First: []string{"1"}}
	window := limitRule(t, "window", "*", byEach, 1, 1000)
	window.Limit.Quota = rules.Quota{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: 1000, Per: time.Hour}, Burst: 1000}
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{
		first, window, shareRule(t, "share", byEach, 1, 1000), waitRule(t, "wait", rules.By{}, rules.Rate{N: 1, Per: time.Hour}, 1000, time.Second),
	}})
	allocs("other limits", f, get("GET /s", "/s", "q=1&b=2"))
	busy := hotRule(t, "busy", "*", byAll, 1, 1)
	busy.Limit.Concurrency = 1
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{busy, exactly(hotRule(t, "exact", "*", byAll, 1, 1), "")}}, WithBackend(newShared(t)))
	if n := testing.AllocsPerRun(500, func() { f.Begin(req) }); n != 0 { // it is not hot
		t.Errorf("concurrency and Redis for hot keys: %v allocations", n)
	}
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}})
	allocs("long", f, get("GET /s", "/s", "q="+strings.Repeat("%C3%A9", 300)))
	if n := testing.AllocsPerRun(500, func() { f.Enter(t.Context(), "job", rules.Param{Name: "q", Value: "1"}) }); n != 0 {
		t.Errorf("Enter: %v allocations", n)
	}
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byNames("rpc:user.id"), 1, 1)}})
	allocs("RPC", f, Request{Pattern: "shop.Search/Find", Field: func(_ string, values []string) []string { return append(values, "7", "8") }})
	if n := testing.AllocsPerRun(500, func() { f.IsHot("GET /s?q=1") }); n != 0 {
		t.Errorf("IsHot: %v allocations", n)
	}
}

// bareWriter is a response that keeps only headers and status.
type bareWriter struct {
	header http.Header
	status int
}

func (w *bareWriter) Header() http.Header         { return w.header }
func (w *bareWriter) WriteHeader(status int)      { w.status = status }
func (w *bareWriter) Write(p []byte) (int, error) { return len(p), nil }

// A flood consists of refusals, so a refusal with its headers and its body takes at most three
// allocations: see package answer.
func TestRefusalAllocatesLittle(t *testing.T) {
	hot, limited := hotRule(t, "hot", "*", byNames("q"), 1, 1), limitRule(t, "limited", "*", byNames("q"), 1, 1)
	blocking := limited
	blocking.Except = []rules.Exception{{Values: is("q", "1"), Action: rules.Block}}
	both := WithHeaders(RateLimitHeaders, LegacyHeaders)
	for name, c := range map[string]struct {
		rule   rules.Rule
		opts   []Option
		status int
	}{
		"hot":                {hot, nil, 429},
		"hot, all headers":   {hot, []Option{both}, 429},
		"keyed":              {limited, nil, 429},
		"keyed, all headers": {limited, []Option{both}, 429},
		"blocked":            {blocking, nil, 403},
	} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{c.rule}}, c.opts...)
		f.heat(t, "hot GET /s?q=1")
		h := f.Handler(ok)
		r := httptest.NewRequest("GET", "/s?q=1", nil)
		w := &bareWriter{header: make(http.Header)}
		h.ServeHTTP(w, r)
		if n := testing.AllocsPerRun(500, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		}); n > 3 || w.status != c.status {
			t.Errorf("%s: %v allocations, status %d, want 3 and %d", name, n, w.status, c.status)
		}
	}
}

// Redacting values does not allocate either.
func TestRedactingDoesNotAllocate(t *testing.T) {
	named := byNames("q", "header:x-api-key", "addr:ip", "path:id")
	combined := named
	combined.Kind = rules.ByCombinations
	for name, by := range map[string]rules.By{"all": byAll, "each": byEach, "names": named, "combinations": combined} {
		rule := hotRule(t, "r", "*", by, 3600, 1)
		rule.Except = []rules.Exception{{Values: is("q", "evil*"), Action: rules.Block}, {Values: is("q", "v*p"), Limit: limit(3600, 2)}}
		f := newFixture(t, redacting([]string{"q", "header:x-api-key", "addr:ip", "path:id"}, rule))
		for _, pattern := range []string{"", "GET /u/{id}"} {
			for _, q := range []string{"1", "evil", "vip", "1&q=2&q=3"} {
				r := &http.Request{Method: "GET", Header: http.Header{"X-Api-Key": {"abc"}}, RemoteAddr: "192.0.2.7:80"}
				req := Request{Method: "GET", Path: "/u/7", Pattern: pattern, Query: "b=1&q=" + q, Caller: "192.0.2.7", HTTP: r}
				for _, state := range []string{"cold", "hot"} {
					if n := testing.AllocsPerRun(500, func() { f.Check(req) }); n != 0 {
						t.Errorf("%s, q=%s on %q, %s: %v allocations", name, q, pattern, state, n)
					}
					f.heat(t, f.keys()...)
				}
			}
		}
		if f.Stats().Limited == 0 {
			t.Errorf("%s: nothing was hot", name)
		}
	}
}

// Counting how on_hot answered a request allocates only when the reason of going alone changes.
func TestOutcomesAllocateNothing(t *testing.T) {
	var h hotState
	h.recordOutcome(Alone, "cookie")
	if n := testing.AllocsPerRun(100, func() {
		h.recordOutcome(Stored, "")
		h.recordOutcome(Alone, "cookie")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := h.onHot(); got != (published.OnHotCounts{Stored: 101, Alone: 102, AloneFor: "cookie"}) {
		t.Errorf("%+v", got)
	}
}
