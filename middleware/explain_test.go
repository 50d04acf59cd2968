package middleware

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func explainFile(t *testing.T, text string) *rules.Rules {
	t.Helper()
	file, err := config.Parse("hotparam.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	file.Rules.Redact.Key = []byte("0123456789abcdef0123456789abcdef")
	return file.Rules
}

// explainRequest explains a net/http request by the rules of a file.
func explainRequest(t *testing.T, ruleset *rules.Rules, r *http.Request, hot ...rules.Key) Explanation {
	t.Helper()
	c := ExplainConfig{Rules: ruleset}
	for _, key := range hot {
		c.Hot = append(c.Hot, published.Hot{Key: key, Rate: 300, Until: time.Now().Add(time.Minute)})
	}
	x, err := Explain(Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, HTTP: r}, c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func keysOf(x Explanation) (keys []string) {
	for _, k := range x.Keys {
		keys = append(keys, k.String())
	}
	return keys
}

const explainedRules = `
namespace: shop
secrets: {redact: ["header:x-api-key"], redact_key_env: KEY}
client: {trusted: [192.0.2.0/24], header: x-forwarded-for}
rules:
  - {id: health, match: {route: "GET /health"}, action: ignore}
  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: {rate: 200/s}, limit: {rate: 50/s, burst: 10}, allow: {q: monitor}, block: {q: attack}}
  - {id: users, match: {route: "GET /u/{id}"}, by: ["path:id"], hot: {rate: 200/s}, limit: {rate: 5/s}}
  - {id: clients, match: {route: "GET /c"}, by: ["addr:v4/24", "cookie:session", "header:x-tenant"], limit: {rate: 5/s}}
  - {id: keys, match: {route: "GET /k"}, by: ["header:x-api-key"], hot: 10/s, limit: 1/s}
  - {id: logins, match: {route: "POST /login"}, by: ["form:user"], limit: {rate: 5/m}}
  - {id: orders, match: {route: "POST /orders"}, by: ["json:item.sku"], hot: 10/s, limit: {rate: 1/s}, unread: reject}
  - {id: each, match: {route: "GET /each"}, by: each, hot: 10/s}
  - {id: tenants, match: {route: "GET /t"}, by: ["ctx:tenant"], hot: 10/s, limit: {rate: 1/s, scope: exact}}
  - {id: exports, match: {route: "GET /export"}, limit: {concurrency: 2}}
  - {id: slow, match: {route: "GET /slow"}, limit: {rate: 1/s, burst: 1, on_limit: wait, wait: 2s}}
`

func TestExplainMakesTheKeysOfEachSource(t *testing.T) {
	rules := explainFile(t, explainedRules)
	header := func(r *http.Request, pairs ...string) *http.Request {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
		return r
	}
	post := func(target, kind, body string) *http.Request {
		return header(httptest.NewRequest(http.MethodPost, target, strings.NewReader(body)), "Content-Type", kind)
	}
	get := func(target string) *http.Request { return httptest.NewRequest(http.MethodGet, target, http.NoBody) }
	for _, test := range []struct {
		name    string
		request *http.Request
		matches []string
		keys    []string
	}{
		{"nothing", get("/other"), nil, nil},
		{"ignored", get("/health"), []string{"health"}, nil},
		{"query", get("/search?b=1&q=a%20b"), []string{"search-terms"}, []string{"search-terms GET /search?q=a%20b"}},
		{"several values", get("/search?q=1&q=2"), []string{"search-terms"}, []string{"search-terms GET /search?q=1", "search-terms GET /search?q=2"}},
		{"path", get("/u/7"), []string{"users"}, []string{"users GET /u/{id}?path:id=7"}},
		{"address, cookie and header", header(get("/c"), "X-Forwarded-For", "10.1.2.3", "Cookie", "session=s1", "X-Tenant", "acme"),
			[]string{"clients"}, []string{"clients GET /c?cookie:session=s1&addr:v4%2F24=10.1.2.0%2F24&header:x-tenant=acme"}},
		{"form", post("/login", "application/x-www-form-urlencoded", "user=ann&x=1"), []string{"logins"}, []string{"logins POST /login?form:user=ann"}},
		{"json", post("/orders", "application/json", `{"item":{"sku":"p1"}}`), []string{"orders"}, []string{"orders POST /orders?json:item.sku=p1"}},
		{"unread", header(post("/login", "application/x-www-form-urlencoded", "user=ann"), "Content-Encoding", "gzip"), []string{"logins"}, []string{"logins POST /login?form:~unread"}},
		{"each", get("/each?a=1&b=2&token=t"), []string{"each"}, []string{"each GET /each?a=1", "each GET /each?b=2"}},
		{"unknown", get("/t"), []string{"tenants"}, nil},
		{"no key", get("/export"), []string{"exports"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := explainRequest(t, rules, test.request)
			if !slices.Equal(x.Matches, test.matches) || !slices.Equal(keysOf(x), test.keys) {
				t.Errorf("matches %q, keys %q, want %q, %q", x.Matches, keysOf(x), test.matches, test.keys)
			}
			if !x.Decision.Allowed {
				t.Errorf("decision %+v, want allowed", x.Decision)
			}
		})
	}
	x := explainRequest(t, rules, header(get("/k"), "X-Api-Key", "geheim"))
	if len(x.Keys) != 1 || strings.Contains(x.Keys[0].Text, "geheim") || !strings.Contains(x.Keys[0].Text, "=hmac-") {
		t.Errorf("keys of a redacted value: %+v", x.Keys)
	}
}

func TestExplainDecides(t *testing.T) {
	ruleset := explainFile(t, explainedRules)
	get := func(target string) *http.Request { return httptest.NewRequest(http.MethodGet, target, http.NoBody) }
	hot := rules.Key{Rule: "search-terms", Text: "GET /search?q=phone"}

	x := explainRequest(t, ruleset, get("/search?q=phone"))
	if x.Keys[0].Hot != nil || !x.Decision.Allowed || !x.Over.Allowed || x.Decision.Reason != rules.ReasonNone {
		t.Errorf("a key that is not hot: %+v", x)
	}
	x = explainRequest(t, ruleset, get("/search?q=phone"), hot)
	if x.Keys[0].Hot == nil || x.Keys[0].Hot.Rate != 300 || x.Decision.Reason != rules.ReasonWithin || x.Decision.Remaining != 9 {
		t.Errorf("a hot key: %+v", x)
	}
	if x.Over.Allowed || x.Over.Reason != rules.ReasonLimited || x.Over.Answer().Status != http.StatusTooManyRequests {
		t.Errorf("a hot key over its limit: %+v", x.Over)
	}
	for name, target := range map[string]string{"keyed": "/c", "permits": "/export", "waits": "/slow"} {
		r := get(target)
		r.Header.Set("X-Tenant", "acme")
		if x := explainRequest(t, ruleset, r); !x.Decision.Allowed || x.Over.Allowed {
			t.Errorf("%s: within %+v, over %+v, want a denial over the limit alone", name, x.Decision, x.Over)
		}
	}
	if x := explainRequest(t, ruleset, get("/search?q=attack"), hot); x.Decision.Reason != rules.ReasonBlocked || x.Keys[0].Action != rules.Block {
		t.Errorf("a blocked value: %+v", x)
	}
	if x := explainRequest(t, ruleset, get("/search?q=monitor"), hot); !x.Over.Allowed || x.Keys[0].Action != rules.Allow {
		t.Errorf("an allowed value: %+v", x)
	}
	broken := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"item":`))
	broken.Header.Set("Content-Type", "application/json")
	if x := explainRequest(t, ruleset, broken); x.Decision.Reason != rules.ReasonUnread || x.Unread.Malformed != 1 {
		t.Errorf("a body that is refused: %+v", x)
	}
}

func TestExplainExactLimits(t *testing.T) {
	ruleset := explainFile(t, explainedRules)
	in := Request{Method: http.MethodGet, Path: "/t"}
	key := rules.Key{Rule: "tenants", Text: "GET /t?ctx:tenant=acme"}
	x, err := Explain(in, ExplainConfig{Rules: ruleset, Hot: []published.Hot{{Key: key}}, Options: []Option{WithParam("tenant", func(context.Context) string { return "acme" })}})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Keys) != 1 || x.Keys[0].Hot == nil || x.Decision.Reason != rules.ReasonWithin || x.Over.Reason != rules.ReasonLimited {
		t.Errorf("%+v", x)
	}
	if x := explainRequest(t, ruleset, httptest.NewRequest(http.MethodGet, "/t", http.NoBody)); x.Absent != 1 {
		t.Errorf("absent %d, want that of ctx:tenant", x.Absent)
	}
}

// The body of a request is still complete after the request was explained.
func TestExplainLeavesTheBody(t *testing.T) {
	rules := explainFile(t, explainedRules)
	for _, body := range []string{"user=ann", "user=" + strings.Repeat("x", 1<<21)} {
		r := httptest.NewRequest(http.MethodPost, "/login", io.NopCloser(strings.NewReader(body)))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		explainRequest(t, rules, r)
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
			t.Errorf("%d bytes (%v), want %d", len(got), err, len(body))
		}
	}
}
