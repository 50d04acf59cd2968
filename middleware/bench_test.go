package middleware

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/rules"
)

// The benchmarks compare Check with the floor: the least that counting a
// request's parameters can cost. Run both in one run, on one processor. The
// figures vary with the machine and only the ratio holds:
//
//	go test ./middleware -run - -bench 'Floor|Check' -cpu 1 -count 6
//
// Check/cold should be at most 2 × Floor.

const benchKeys = 100_000

// benchQueries returns queries with the values 0 to 99,999, formatted by a format with one %d.
// Value k occurs as often as Zipf's law says.
func benchQueries(format string) []string {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.1, 1, benchKeys-1)
	queries := make([]string, 1<<17)
	for i := range queries {
		queries[i] = fmt.Sprintf(format, z.Uint64())
	}
	return queries
}

func BenchmarkFloor(b *testing.B) {
	seed := maphash.MakeSeed()
	counts := make(map[uint64]*atomic.Int64, benchKeys)
	var buf [64]byte
	for i := range benchKeys {
		counts[maphash.Bytes(seed, yardstick.SortTwo(buf[:0], fmt.Sprintf("q=%d&b=2", i)))] = new(atomic.Int64)
	}
	queries := benchQueries("q=%d&b=2")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := yardstick.SortTwo(buf[:0], queries[i&(len(queries)-1)])
		counts[maphash.Bytes(seed, key)].Add(1)
	}
}

// benchCases are requests whose keys are not hot.
var benchCases = []struct {
	name, rule, pattern, path, query string
	by                               rules.By
}{
	{"cold", "GET /search", "GET /search", "/search", "q=%d&b=2", byAll},
	{"names", "GET /search", "GET /search", "/search", "q=%d&b=2", byNames("q")},
	{"each", "GET /search", "GET /search", "/search", "q=%d&b=2", byEach},
	{"escaped", "GET /search", "GET /search", "/search", "q=caf%%C3%%A9+%d&b=%%32", byAll},
	{"repeated", "GET /search", "GET /search", "/search", "q=%d&q=1&q=2&b=2", byEach},
	{"six", "GET /search", "GET /search", "/search", "q=%d&b=2&a=1&sort=up&page=7&lang=en", byAll},
	{"path", "GET /u/{id}", "GET /u/{id}", "/u/77", "q=%d&b=2", byNames("q", "path:id")},
	{"unknown", "GET /search", "", "/search", "q=%d&b=2", byAll},
	{"any", "*", "", "/search", "q=%d&b=2", byAll},
	{"escapedpath", "GET /u/{id}", "GET /u/{id}", "/u/caf%C3%A9", "q=%d&b=2", byNames("q", "path:id")},
}

// sourceCases are requests that are not hot, by rules that name a parameter of each source. Its
// set puts a value into the request.
var sourceCases = []struct {
	name, by string
	set      func(r *http.Request, value string)
}{
	{"header", "header:x-plan", func(r *http.Request, value string) { r.Header["X-Plan"][0] = value }},
	{"cookie", "cookie:cart", func(r *http.Request, value string) { r.Header["Cookie"][0] = value }},
	{"addr", "addr:ip", func(r *http.Request, value string) { r.RemoteAddr = value }},
	{"forwarded", "addr:v4/24", func(r *http.Request, value string) { r.Header["X-Forwarded-For"][0] = value }},
	{"ctx", "ctx:user", func(*http.Request, string) {}},
}

// sourceValues returns values for sourceCases, and the request that they are put into.
func sourceValues(name string) (*http.Request, []string) {
	r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{"X-Plan": {""}, "Cookie": {""}, "X-Forwarded-For": {""}}}
	values := benchQueries("theme=dark; cart=c%d; lang=en")
	for i, v := range values {
		_, v, _ = strings.Cut(v, "cart=c")
		v, _, _ = strings.Cut(v, ";")
		n, _ := strconv.Atoi(v)
		switch name {
		case "header", "ctx":
			values[i] = v
		case "addr":
			values[i] = fmt.Sprintf("192.%d.%d.%d:1234", n>>16, n>>8&255, n&255)
		case "forwarded":
			values[i] = fmt.Sprintf("1.1.1.1, %d.%d.%d.7, 10.0.0.2", 20+n>>16, n>>8&255, n&255)
		}
	}
	return r, values
}

// sourceFixture returns a guard for one of sourceCases. The context's user is *user.
func sourceFixture(tb testing.TB, by string, user *string, opts ...Option) *fixture {
	return newFixtureOf(tb, rules.Rules{
		Rules:  []rules.Rule{hotRule(tb, "r", "GET /search", byNames(by), 3600, 1)},
		Client: rules.Client{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: rules.XForwardedFor},
	}, collector.Config{MaxKeys: collector.DefaultMaxKeys}, append(opts, WithParam("user", func(context.Context) string { return *user }))...)
}

func BenchmarkCheckSources(b *testing.B) {
	for _, c := range sourceCases {
		b.Run(c.name, func(b *testing.B) {
			r, values := sourceValues(c.name)
			var user string
			start := time.Now()
			f := sourceFixture(b, c.by, &user, WithClock(func() time.Duration { return time.Since(start) }))
			req := get("GET /search", "/search", "q=1&b=2")
			req.HTTP = r
			check := func(value string) {
				user = value
				c.set(r, value)
				f.Check(req)
			}
			f.warm(b, len(values), func(i int) { check(values[i]) })
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				check(values[i&(len(values)-1)])
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, c := range benchCases {
		b.Run(c.name, func(b *testing.B) {
			queries := benchQueries(c.query)
			g := benchGuard(b, hotRule(b, "r", c.rule, c.by, 3600, 1), c.pattern, c.path, queries)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				g.Check(get(c.pattern, c.path, queries[i&(len(queries)-1)]))
			}
		})
	}
	combined := rules.By{Kind: rules.ByCombinations}
	except := hotRule(b, "r", "GET /search", byAll, 3600, 1)
	for i := range 10 {
		except.Except = append(except.Except, rules.Exception{Values: is("q", fmt.Sprint("free", i)), Action: rules.Allow})
	}
	for name, rule := range map[string]rules.Rule{"combinations": hotRule(b, "r", "GET /search", combined, 3600, 1), "exceptions": except} {
		b.Run(name, func(b *testing.B) {
			queries := benchQueries("q=%d&b=2")
			g := benchGuard(b, rule, "GET /search", "/search", queries)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				g.Check(get("GET /search", "/search", queries[i&(len(queries)-1)]))
			}
		})
	}
	b.Run("cost", func(b *testing.B) {
		queries := benchQueries("q=%d&b=2")
		rule := hotRule(b, "r", "GET /search", byAll, 3600, 1)
		rule.Count = rules.Units
		g := benchGuard(b, rule, "GET /search", "/search", queries)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, ticket := g.Begin(get("GET /search", "/search", queries[i&(len(queries)-1)]))
			ticket.End(Cost{Units: 3})
		}
	})
	b.Run("hot", func(b *testing.B) { // and decided
		g := benchGuard(b, hotRule(b, "r", "GET /search", byAll, 3600*1e6, 1e6), "GET /search", "/search", nil)
		g.heat(b, "r GET /search?b=2&q=1")
		b.ReportAllocs()
		for b.Loop() {
			g.Check(get("GET /search", "/search", "q=1&b=2"))
		}
	})
}

// timedHandler returns the handler of a guard that counts time, and a request. If cost is set, the
// rule finds hot keys by their cost.
func timedHandler(tb testing.TB, cost bool) (http.Handler, *http.Request) {
	rule := hotRule(tb, "r", "GET /s", byNames("q"), 3600, 1)
	rule.Count = rules.Millis
	if cost {
		rule = costAuto(tb, byNames("q"))
	}
	f := newFixture(tb, rules.Rules{Rules: []rules.Rule{rule}})
	r := httptest.NewRequest("GET", "/s?q=1", nil)
	r.Pattern = "GET /s"
	return f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), r
}

// BenchmarkTime measures a request whose time is counted, with its handler.
func BenchmarkTime(b *testing.B) {
	h, r := timedHandler(b, false)
	benchmarkHandler(b, h, r)
}

// BenchmarkCost measures a request whose rule finds hot keys by their cost.
func BenchmarkCost(b *testing.B) {
	h, r := timedHandler(b, true)
	benchmarkHandler(b, h, r)
}

func benchmarkHandler(b *testing.B, h http.Handler, r *http.Request) {
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(nil, r)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				h.ServeHTTP(nil, r)
			}
		})
	})
}

// BenchmarkCheckParallel measures a request that is not hot, on all processors at a time. Its
// ns/op should fall as -cpu rises.
func BenchmarkCheckParallel(b *testing.B) {
	queries := benchQueries("q=%d&b=2")
	g := benchGuard(b, hotRule(b, "r", "GET /search", byAll, 3600, 1), "GET /search", "/search", queries)
	b.ReportAllocs()
	var start atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(start.Add(1 << 14)); pb.Next(); i++ {
			g.Check(get("GET /search", "/search", queries[i&(len(queries)-1)]))
		}
	})
}

// benchGuard returns a guard with the real clock that has seen all queries. Its collector flushes
// as in production.
func benchGuard(b *testing.B, rule rules.Rule, pattern, path string, queries []string) *fixture {
	b.Helper()
	start := time.Now()
	f := newFixtureOf(b, rules.Rules{Rules: []rules.Rule{rule}}, collector.Config{MaxKeys: collector.DefaultMaxKeys},
		WithClock(func() time.Duration { return time.Since(start) }))
	f.warm(b, len(queries), func(i int) { f.Check(get(pattern, path, queries[i])) })
	return f
}

// warm makes n requests, and has the collector flush as in production from then on.
func (f *fixture) warm(b *testing.B, n int, request func(i int)) {
	start := time.Now()
	f.sink.discard = true
	for i := range n {
		request(i)
		if i%10_000 == 0 {
			f.counts.Flush(b.Context(), start)
		}
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- f.counts.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if dropped := f.counts.Stats().Dropped.Sum(); dropped > 0 {
			b.Errorf("%d counts were dropped", dropped)
		}
	})
}

// BenchmarkCheckRedacted measures a request whose key has one redacted value.
func BenchmarkCheckRedacted(b *testing.B) {
	for _, redacts := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "redacted"}[redacts]
		b.Run(name, func(b *testing.B) {
			rules := rules.Rules{Rules: []rules.Rule{hotRule(b, "r", "GET /search", byNames("header:x-plan"), 3600, 1)}}
			if redacts {
				rules = redacting([]string{"header:x-plan"}, rules.Rules...)
			}
			f := newFixture(b, rules)
			req := get("GET /search", "/search", "q=1")
			req.HTTP = &http.Request{Method: "GET", Header: http.Header{"X-Plan": {"gold"}}}
			b.ReportAllocs()
			for b.Loop() {
				f.Check(req)
			}
		})
	}
}
