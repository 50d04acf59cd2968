package explain_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/explain"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

const all = `
namespace: shop
no_match: deny
secrets: {redact: ["header:x-api-key"], redact_key_env: KEY}
rules:
  - {id: health, match: {route: "GET /health"}, action: ignore}
  - {id: terms, match: {route: "GET /search"}, by: [q], hot: 200/s, limit: 50/s, allow: {q: monitor}, block: {q: "wp-*"}}
  - {id: watch, match: {route: "GET /browse"}, by: [q], hot: 200/s}
  - {id: shadow, match: {route: "GET /shadow"}, limit: {rate: 1/s, on_limit: shadow}}
  - {id: serve, match: {route: "GET /serve"}, limit: {rate: 1/s, on_limit: serve, serve: {status: 203, body: later}}}
  - {id: keys, match: {route: "GET /k"}, by: ["header:x-api-key"], hot: 10/s, limit: 1/s}
  - {id: clients, match: {route: "GET /c"}, by: ["addr:ip"], limit: 1/s}
  - {id: users, match: {route: "GET /u"}, by: ["ctx:user", "rpc:q"], hot: 10/s, limit: 1/s}
  - {id: orders, match: {route: "POST /orders"}, by: ["json:sku"], limit: 1/s, unread: reject}
  - {id: shared, match: {route: "/shared"}, by: [q], hot: 200/s, limit: 50/s, on_hot: {cache: 1s, vary: ["header:accept-language"]}}
  - {id: slow, match: {route: "GET /slow"}, by: [q], hot: {cost: auto}, limit: {concurrency: auto}}
  - {id: find, match: {route: Search/Find}, by: [q], hot: 10/s, limit: 1/s}
  - {id: message, match: {route: Search/Rpc}, by: ["header:x-tenant", "rpc:query"], hot: 10/s, limit: 1/s}
`

func TestExplain(t *testing.T) {
	file, err := config.Parse("hotparam.yaml", []byte(all))
	if err != nil {
		t.Fatal(err)
	}
	r := explain.Rules{Rules: file.Rules, LimitWords: func(_ *rules.Rule, l *rules.Limit) string { return l.Rate.String() }}
	hot := func(rule, text string) published.Hot {
		return published.Hot{Key: rules.Key{Rule: rule, Text: text}, Rate: 300}
	}
	controlled := func(action published.ControlAction, rule, text string) explain.Facts {
		return explain.Facts{Controls: []published.Control{{Key: rules.Key{Rule: rule, Text: text}, Action: action, Until: time.Now().Add(time.Hour), By: "ann"}}}
	}
	facts := explain.Facts{Hot: []published.Hot{hot("terms", "GET /search?q=phone"), hot("watch", "GET /browse?q=phone"), hot("find", "Search/Find?q=phone"), hot("shared", "GET /shared?q=phone"), hot("shared", "DELETE /shared?q=phone"),
		hot("message", "Search/Rpc?rpc:query=phone&header:x-tenant=acme")}}
	held := func(stage published.HoldStage, permits int64) explain.Facts {
		h := hot("slow", "GET /slow?q=phone")
		if stage != "" {
			h.Hold = &published.Hold{Pool: "slow", Permits: permits, Stage: stage}
		}
		return explain.Facts{Hot: []published.Hot{h}}
	}
	for _, test := range []struct {
		name     string
		q        explain.RequestJSON
		facts    explain.Facts
		decision explain.Decision
		status   int
		says     string
	}{
		{"no match", explain.RequestJSON{URL: "/x"}, facts, explain.Refuse, 403, "No rule matches, and no_match: deny"},
		{"ignored", explain.RequestJSON{URL: "/health"}, facts, explain.Pass, 0, "action: ignore"},
		{"hot", explain.RequestJSON{URL: "/search?q=phone"}, facts, explain.Limit, 429, "Then rule terms refuses it"},
		{"held to none", explain.RequestJSON{URL: "/slow?q=phone"}, held(published.HoldTrial, 0), explain.Refuse, 503, "Rule slow holds a key that slows other keys down"},
		{"held", explain.RequestJSON{URL: "/slow?q=phone"}, held(published.HoldKept, 2), explain.Limit, 503, "Then rule slow refuses it"},
		{"suspected", explain.RequestJSON{URL: "/slow?q=phone"}, held(published.HoldSuspected, 0), explain.Pass, 0, "may slow other keys down, and is not held"},
		{"not held", explain.RequestJSON{URL: "/slow?q=phone"}, held("", 0), explain.Pass, 0, "not by its cost"},
		{"not hot", explain.RequestJSON{URL: "/search?q=radio"}, facts, explain.Pass, 0, "None of its keys is hot"},
		{"allowed", explain.RequestJSON{URL: "/search?q=monitor"}, facts, explain.Pass, 0, "An exception allows"},
		{"blocked", explain.RequestJSON{URL: "/search?q=wp-login"}, facts, explain.Refuse, 403, "blocks the value"},
		{"not known", explain.RequestJSON{URL: "/search?q=phone"}, explain.Facts{Unknown: "Redis cannot be asked"}, explain.Unknown, 0, "unless one of its keys is hot"},
		{"listed only", explain.RequestJSON{URL: "/browse?q=phone"}, facts, explain.Pass, 0, "only lists it"},
		{"shadow", explain.RequestJSON{URL: "/shadow"}, facts, explain.Pass, 0, "on_limit: shadow"},
		{"blocked by an operator", explain.RequestJSON{URL: "/search?q=x"}, controlled(published.ControlBlock, "terms", "GET /search?q=x"), explain.Refuse, 403, "An operator blocks"},
		{"allowed by an operator", explain.RequestJSON{URL: "/search?q=wp-login"}, controlled(published.ControlAllow, "terms", "GET /search?q=wp-login"), explain.Pass, 0, "An operator allows"},
		{"pinned", explain.RequestJSON{URL: "/search?q=x"}, controlled(published.ControlPin, "terms", "GET /search?q=x"), explain.Limit, 429, "Then rule terms"},
		{"controls not known", explain.RequestJSON{URL: "/search?q=x"}, explain.Facts{NoControls: "NOPERM"}, explain.Pass, 0, "Which controls operators have set is not known"},
		{"served", explain.RequestJSON{URL: "/serve"}, facts, explain.Limit, 203, "until a limit below is exhausted"},
		{"redacted", explain.RequestJSON{URL: "/k", Headers: http.Header{"X-Api-Key": {"geheim"}}}, facts, explain.Unknown, 0, "hmac-? represents"},
		{"no address", explain.RequestJSON{URL: "/c"}, facts, explain.Pass, 0, "--client"},
		{"address", explain.RequestJSON{URL: "/c", Client: "203.0.113.7"}, facts, explain.Limit, 429, "until a limit below is exhausted"},
		{"what the program knows", explain.RequestJSON{URL: "/u"}, facts, explain.Pass, 0, "ctx:user comes from the program itself"},
		{"what a message has", explain.RequestJSON{URL: "/u"}, facts, explain.Pass, 0, "rpc:q is a field"},
		{"shared", explain.RequestJSON{URL: "/shared?q=phone"}, facts, explain.Limit, 429, "Its key is hot, and on_hot of rule shared answers it once for all requests with the same scheme, host, target, accepted codings and header:accept-language"},
		{"shared while hot", explain.RequestJSON{URL: "/shared?q=radio"}, facts, explain.Pass, 0, "While its key is hot, on_hot of rule shared answers it once"},
		{"not shared by its cookie", explain.RequestJSON{URL: "/shared?q=phone", Headers: http.Header{"cookie": {"a=b"}}}, facts, explain.Limit, 429, "does not answer it together with others: it has cookies"},
		{"not shared by its method", explain.RequestJSON{Method: "DELETE", URL: "/shared?q=phone"}, facts, explain.Limit, 429, "does not answer it together with others: only GET and HEAD"},
		{"not shared by its length", explain.RequestJSON{URL: "/shared?q=phone&x=" + strings.Repeat("x", 9000)}, facts, explain.Limit, 429, "too long"},
		{"a resource", explain.RequestJSON{Resource: "Search/Find", Params: url.Values{"q": {"phone"}}}, facts, explain.Limit, 0, "Then rule find refuses it"},
		{"a resource that is not hot", explain.RequestJSON{Resource: "Search/Find", Params: url.Values{"q": {"radio"}}}, facts, explain.Pass, 0, "None of its keys is hot"},
		{"an RPC", explain.RequestJSON{Resource: "Search/Rpc", Params: url.Values{"rpc:query": {"phone"}}, Headers: http.Header{"X-Tenant": {"acme"}}}, facts, explain.Limit, 0, "Then rule message refuses it"},
		{"unread", explain.RequestJSON{Method: "POST", URL: "/orders", Body: "{", Headers: http.Header{"Content-Type": {"application/json"}}}, facts, explain.Refuse, 400, "Its body cannot be read: it is not what"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.q.Method == "" && test.q.Resource == "" {
				test.q.Method = http.MethodGet
			}
			d, err := explain.Explain(test.q, r, test.facts)
			if err != nil {
				t.Fatal(err)
			}
			status := 0
			if d.Answer != nil {
				status = d.Answer.Status
			}
			if d.Decision != test.decision || status != test.status || !strings.Contains(strings.Join(d.Why, "\n"), test.says) {
				t.Errorf("%s, answer %d, %q; want %s, %d, %q", d.Decision, status, d.Why, test.decision, test.status, test.says)
			}
			if n := len(test.facts.Controls); n > 0 && (len(d.Keys) != 1 || d.Keys[0].Control == nil || d.Keys[0].Control.By != "ann" || d.Keys[0].Hot == nil || *d.Keys[0].Hot) {
				t.Errorf("keys %+v, want one with its control, which is not hot", d.Keys)
			}
			if slices.ContainsFunc(d.Keys, func(k explain.KeyExplanation) bool { return strings.Contains(k.Key, "geheim") }) {
				t.Errorf("a redacted value is shown: %+v", d.Keys)
			}
		})
	}
	if len(file.Rules.Redact.Key) != 0 {
		t.Error("the rules were changed")
	}
}
