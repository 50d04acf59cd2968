package middleware

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// asked returns a request with a header or two, from an address.
func asked(path, from string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.RemoteAddr = from
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// passed reports for each request whether it passes.
func passed(h http.Handler, requests ...*http.Request) (all []bool) {
	for _, r := range requests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		all = append(all, w.Code == http.StatusOK)
	}
	return all
}

// Limit applies the quota to each value of the parameter over all routes. The requests without the
// parameter share one quota, so a client cannot escape by leaving it out.
func TestLimit(t *testing.T) {
	quota := limiter.Per(2, time.Hour)
	proxies := WithClient(rules.Client{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Header: rules.XForwardedFor})
	const a, b, proxy = "192.0.2.1:1", "192.0.2.2:1", "10.1.1.1:1"
	for name, c := range map[string]struct {
		by       string
		opts     []Option
		requests []*http.Request
		want     []bool
	}{
		"all together":      {"", nil, []*http.Request{asked("/", a), asked("/x", b), asked("/", b)}, []bool{true, true, false}},
		"addresses":         {"addr:ip", nil, []*http.Request{asked("/", a), asked("/x", a), asked("/y", a), asked("/", b)}, []bool{true, true, false, true}},
		"the peer, if not":  {"addr:ip", nil, []*http.Request{asked("/", a, "X-Forwarded-For", "1.1.1.1"), asked("/", a, "X-Forwarded-For", "1.1.1.2"), asked("/", a, "X-Forwarded-For", "1.1.1.3")}, []bool{true, true, false}},
		"behind a proxy":    {"addr:ip", []Option{proxies}, []*http.Request{asked("/", proxy, "X-Forwarded-For", "1.1.1.1"), asked("/", proxy, "X-Forwarded-For", "1.1.1.1"), asked("/", proxy, "X-Forwarded-For", "1.1.1.1"), asked("/", proxy, "X-Forwarded-For", "1.1.1.2")}, []bool{true, true, false, true}},
		"a secret header":   {"header:x-api-key", nil, []*http.Request{asked("/", a, "X-Api-Key", "k"), asked("/", b, "X-Api-Key", "k"), asked("/", a, "X-Api-Key", "k"), asked("/", a, "X-Api-Key", "l")}, []bool{true, true, false, true}},
		"without it":        {"header:x-api-key", nil, []*http.Request{asked("/", a), asked("/x", b), asked("/", a), asked("/", a, "X-Api-Key", "k")}, []bool{true, true, false, true}},
		"an empty one":      {"header:x-api-key", nil, []*http.Request{asked("/", a, "X-Api-Key", ""), asked("/", a, "X-Api-Key", ""), asked("/", a, "X-Api-Key", "")}, []bool{true, true, false}},
		"repeated":          {"q", nil, []*http.Request{asked("/?q=1&q=2", a), asked("/?q=1&q=3", a), asked("/?q=1&q=4", a), asked("/?q=4", a)}, []bool{true, true, false, true}},
		"a form":            {"form:user", nil, []*http.Request{asked("/?user=u", a), asked("/x?user=u", b), asked("/?user=u", a), asked("/", a)}, []bool{true, true, false, true}},
		"nobody in shadow":  {"", []Option{WithShadow()}, []*http.Request{asked("/", a), asked("/", a), asked("/", a)}, []bool{true, true, true}},
		"those not skipped": {"", []Option{WithSkip(func(r *http.Request) bool { return r.URL.Path == "/healthz" })}, []*http.Request{asked("/", a), asked("/healthz", a), asked("/", a), asked("/", a), asked("/healthz", a)}, []bool{true, true, true, false, true}},
	} {
		if got := passed(Limit(quota, c.by, c.opts...)(ok), c.requests...); !slices.Equal(got, c.want) {
			t.Errorf("%s: passed %v, want %v", name, got, c.want)
		}
	}
	limit := Limit(quota, "addr:ip", WithHeaders())
	one, two := limit(ok), limit(ok) // as routers make them for two routes
	if got := append(passed(one, asked("/", a), asked("/", a)), passed(two, asked("/", a))...); !slices.Equal(got, []bool{true, true, false}) {
		t.Errorf("two handlers of one limit: passed %v", got)
	}
	w := httptest.NewRecorder()
	two.ServeHTTP(w, asked("/", a))
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || w.Header().Get("RateLimit") == "" || !strings.Contains(w.Body.String(), quotaType) {
		t.Errorf("%d %v %s: want the guard's answer", w.Code, w.Header(), w.Body)
	}
}

func TestLimitPanics(t *testing.T) {
	for want, f := range map[string]func(){
		`did you mean "header:x-id"`: func() { Limit(limiter.PerSecond(1), "headr:x-id") },
		"limit.rate is missing":      func() { Limit(rules.Quota{}, "") },
		"an address has no such":     func() { Limit(limiter.PerSecond(1), "addr:mac") },
		"no function has ctx:user":   func() { Limit(limiter.PerSecond(1), "ctx:user") },
		"client.header is missing":   func() { Limit(limiter.PerSecond(1), "", WithClient(rules.Client{TrustUnix: true})) },
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.HasPrefix(got, "middleware: Limit: ") || !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			f()
		}()
	}
}

// A guard that only limits starts no goroutine.
func TestLimitStartsNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	h := Limit(limiter.PerSecond(1), "addr:ip")(ok)
	passed(h, asked("/", "192.0.2.1:1"), asked("/", "192.0.2.1:1"))
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// A guard without a collector decides the same as one with a collector, whatever its rules. Rules
// that need a collector are refused at any time, by name.
func TestGuardWithoutCollector(t *testing.T) {
	priced := limitRule(t, "priced", "GET /priced", byNames("q"), 3, 3)
	priced.Count = rules.Units
	exceptional := limitRule(t, "except", "*", byNames("q"), 9, 9)
	exceptional.Except = []rules.Exception{{Values: is("q", "1"), Limit: limit(2, 2)}, {Values: is("q", "2"), Action: rules.Block}}
	long := strings.Repeat("long", 200)
	ruleset := rules.Rules{Namespace: "test", Rules: []rules.Rule{
		limitRule(t, "all", "*", rules.By{}, 40, 40), limitRule(t, "each", "GET /s", byEach, 12, 12), limitRule(t, "every", "GET /s", byAll, 6, 6),
		limitRule(t, "named", "GET /s", byNames("q", "header:x-id"), 5, 5), busyRule(t, "busy", byNames("q"), 1, 0), priced, exceptional,
	}}
	now := WithClock(func() time.Duration { return time.Hour })
	counts, err := collector.New(collector.Config{Sink: &tallySink{}})
	if err != nil {
		t.Fatal(err)
	}
	counting, err := New(&ruleset, counts, now)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := New(&ruleset, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	denied := 0
	for i := range 400 {
		path := []string{"/s", "/priced", "/other"}[rand.IntN(3)]
		query := []string{"", "q=1", "q=2", "q=3&b=1", "q=1&q=4", "q=" + long, "b=9"}[rand.IntN(7)]
		if i == 200 { // both change their rules
			changed := ruleset
			changed.Rules = append(slices.Clone(ruleset.Rules[1:]), limitRule(t, "new", "*", byNames("b"), 4, 4))
			if err := counting.Reload(&changed); err != nil {
				t.Fatal(err)
			}
			if err := alone.Reload(&changed); err != nil {
				t.Fatal(err)
			}
		}
		var decisions [2]rules.Decision
		for j, g := range []*Guard{counting, alone} {
			d, ticket := g.Begin(get("GET "+path, path, query))
			if ticket != nil {
				ticket.End(Cost{Units: 2})
			}
			d.From, d.Backoff = nil, 0
			decisions[j] = d
		}
		if decisions[0] != decisions[1] {
			t.Fatalf("request %d, %s?%s: %+v with a collector, %+v without", i, path, query, decisions[0], decisions[1])
		}
		if !decisions[0].Allowed {
			denied++
		}
	}
	if denied == 0 || denied == 400 || alone.Stats().Panics > 0 {
		t.Errorf("%d of 400 denied, %+v", denied, alone.Stats())
	}
	hot := ruleset
	hot.Rules = []rules.Rule{hotRule(t, "found", "*", byEach, 1, 1)}
	if err := alone.Reload(&hot); err == nil || !strings.Contains(err.Error(), `"found"`) {
		t.Errorf("%v: want the rule that needs a collector", err)
	}
	alone.HotSet().Update("1", published.Change{Hot: []published.Hot{{Key: rules.Key{Rule: "each", Text: "GET /s?q=1"}}}})
	if n := len(alone.HotKeys()); n != 1 {
		t.Errorf("%d hot keys", n)
	}
}
