package middleware

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

const redactKey = "0123456789abcdef0123456789abcdef"

// redacting returns rules that redact the parameters with these names.
func redacting(names []string, ruleset ...rules.Rule) rules.Rules {
	return rules.Rules{Rules: ruleset, Redact: rules.Redact{Names: byNames(names...).Names, Key: []byte(redactKey)}}
}

// redactedParam returns "name=value" of a key, redacted with crypto/hmac alone.
func redactedParam(written string) string {
	name, _, _ := strings.Cut(written, "=")
	mac := hmac.New(sha256.New, []byte(redactKey))
	fmt.Fprint(mac, written)
	return name + "=hmac-" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// redactedKey returns a key whose values that begin with hushed are redacted, in the order of
// keys.
func redactedKey(member string) string {
	head, params, found := strings.Cut(member, "?")
	if !found || !strings.Contains(params, hushed) {
		return member
	}
	list := strings.Split(params, "&")
	for i, p := range list {
		if strings.Contains(p, hushed) {
			list[i] = redactedParam(p)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		nameA, valueA, _ := strings.Cut(a, "=")
		nameB, valueB, _ := strings.Cut(b, "=")
		byName := strings.Compare(nameA[strings.IndexByte(nameA, ':')+1:], nameB[strings.IndexByte(nameB, ':')+1:])
		if byName != 0 {
			return byName
		}
		valueA, _ = url.PathUnescape(valueA)
		valueB, _ = url.PathUnescape(valueB)
		return strings.Compare(valueA, valueB)
	})
	return head + "?" + strings.Join(list, "&")
}

// hushed is part of each value that must not leave the process.
const hushed = "HUSH"

// backendRecorder is a backend that records its operations.
type backendRecorder struct {
	limiter.Backend
	mu   sync.Mutex
	sent []string
}

func (r *backendRecorder) Do(ctx context.Context, op limiter.Op) (limiter.Result, error) {
	r.mu.Lock()
	r.sent = append(r.sent, op.Name, op.Key)
	r.mu.Unlock()
	return r.Backend.Do(ctx, op)
}

// The keys are the same as without redaction, except that redacted values are replaced by their
// HMAC. No plain value is in anything that leaves the process.
func TestRedactedKeys(t *testing.T) {
	sources := []string{"q", "page", "header:x-api-key", "cookie:session", "ctx:user", "addr:ip", "path:id"}
	// An address cannot contain the mark, so it has its own test.
	redactable := sources[:5:5]
	kinds := []rules.By{byAll, byEach, {Kind: rules.ByCombinations}, {Kind: rules.ByNames}, {Kind: rules.ByCombinations}}
	rapid.Check(t, func(rt *rapid.T) {
		by := rapid.SampledFrom(kinds).Draw(rt, "kind")
		if by.Kind == rules.ByNames || by.Kind == rules.ByCombinations && rapid.Bool().Draw(rt, "named") {
			from := sources
			if rapid.Bool().Draw(rt, "query alone") {
				from = sources[:2]
			}
			by.Names = byNames(rapid.SliceOfNDistinct(rapid.SampledFrom(from), 1, min(4, len(from)), rapid.ID[string]).Draw(rt, "names")...).Names
		}
		hush := rapid.SliceOfNDistinct(rapid.SampledFrom(append(redactable, "path:id")), 1, 4, rapid.ID[string]).Draw(rt, "redact")
		tail := rapid.SampledFrom([]string{"", "1", "2", "é", "%", "a&b=c", "x y", "?"})
		value := func(name string) string {
			v := "plain" + tail.Draw(rt, "value")
			if slices.Contains(hush, name) {
				v = hushed + v
			}
			return v
		}
		route := rapid.SampledFrom([]string{"GET /u/{id}", "GET /s"}).Draw(rt, "route")
		rule := hotRule(t, "r", route, by, 0, 0)
		rule.ParamsOnly = rapid.Bool().Draw(rt, "params only")
		if rapid.Bool().Draw(rt, "match") {
			rule.Match.Query = []rules.QueryMatch{{Name: "q", Value: "*plain*"}}
		}
		user := ""
		param := WithParam("user", func(context.Context) string { return user })
		// Otherwise one of the two would leave out parameters with these names as secrets.
		secrets := rules.NewSecrets(nil, []string{"session", "x-api-key"})
		plain := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}, Secrets: secrets}, param)
		ruleset := redacting(hush, rule)
		if !slices.Contains(hush, "header:x-api-key") || !slices.Contains(hush, "cookie:session") {
			ruleset.Secrets = rules.NewSecrets(nil, []string{"other"})
			named := func(source rules.Source, name string) bool {
				return slices.Contains(by.Names, rules.Param{Source: source, Name: name})
			}
			if named(rules.Header, "x-api-key") && !slices.Contains(hush, "header:x-api-key") || named(rules.Cookie, "session") && !slices.Contains(hush, "cookie:session") {
				return // such a rule is refused: they look secret
			}
		}
		redacts := newFixture(t, ruleset, param)
		for range rapid.IntRange(1, 3).Draw(rt, "requests") {
			query := make(url.Values)
			for _, name := range []string{"q", "page"} {
				for range rapid.IntRange(0, 2).Draw(rt, name) {
					query.Add(name, value(name))
				}
			}
			r := &http.Request{Method: "GET", URL: &url.URL{}, Header: make(http.Header), RemoteAddr: "192.0.2.7:80"}
			r.Header.Add("X-Api-Key", value("header:x-api-key"))
			r.Header.Set("Cookie", "session="+url.QueryEscape(value("cookie:session")))
			user = value("ctx:user")
			path := "/u/" + url.PathEscape(value("path:id"))
			if route == "GET /s" {
				path = "/s"
			}
			req := Request{Method: "GET", Path: path, Query: query.Encode(), HTTP: r}
			if rapid.Bool().Draw(rt, "known") {
				req.Pattern = route
			}
			if rapid.Bool().Draw(rt, "plain query") {
				req.Query = "q=plainA&page=plainB"
				for _, name := range hush {
					req.Query = strings.Replace(req.Query, name+"=", name+"="+hushed, 1)
				}
			}
			plain.Check(req)
			redacts.Check(req)
		}
		want := make(map[string]int64)
		for member, n := range plain.keyCounts() {
			if rule.ParamsOnly {
				head, params, _ := strings.Cut(member, " ")
				member = strings.Replace(redactedKey(head+" ?"+params), "?", "", 1)
			} else {
				member = redactedKey(member)
			}
			want[member] += n
		}
		got := redacts.keyCounts()
		if !maps.Equal(got, want) {
			rt.Fatalf("keys\n%v, want\n%v", got, want)
		}
		for member := range got {
			if strings.Contains(member, hushed) {
				rt.Fatalf("%s has a plain value", member)
			}
		}
	})
	for _, by := range []rules.By{byAll, byEach, {Kind: rules.ByCombinations}, byNames("q")} { // the texts compared above are redacted
		f := newFixture(t, redacting([]string{"q"}, hotRule(t, "r", "GET /s", by, 0, 0)))
		f.Check(Request{Method: "GET", Path: "/s", Query: "q=" + hushed})
		if keys := slices.Collect(maps.Keys(f.keyCounts())); !strings.Contains(strings.Join(keys, "\n"), "hmac-") {
			t.Errorf("%v: %q", by.Kind, keys)
		}
	}
}

// No plain value leaves the process by other ways: calls of a backend, origins, routes that are
// not templates, and keys of matchers and of Enter.
func TestNoPlainValueLeaves(t *testing.T) {
	back := &backendRecorder{Backend: newShared(t)}
	exact := exactly(limitRule(t, "exact", "GET /u/{id}", byNames("path:id", "q"), 3600, 1), "")
	exact.Except = []rules.Exception{{Values: is("q", hushed+"*"), Limit: exactly(limitRule(t, "x", "*", byNames("q"), 1, 1), "").Limit}}
	matched := hotRule(t, "matched", "GET /u/{id}", byNames("q"), 3600, 1)
	ruleset := redacting([]string{"q", "key", "path:id", "addr:ip"}, exact, matched,
		hotRule(t, "any", "*", byAll, 3600, 1), hotRule(t, "each", "*", byEach, 3600, 1), hotRule(t, "addr", "*", byNames("addr:ip"), 3600, 1))
	f := newFixture(t, ruleset, WithBackend(back), WithMatcher("matched", func(*http.Request) (string, bool) { return hushed + "matched", false }))
	send := func() {
		for _, pattern := range []string{"", "GET /u/{id}", "GET /u/" + hushed + "7", "/u/" + hushed + "7"} {
			r := &http.Request{Method: "GET", URL: &url.URL{}, RemoteAddr: "203.0.113.77:80"}
			f.Check(Request{Method: "GET", Path: "/u/" + hushed + "7", Query: "q=" + hushed + "1&q=" + hushed + "2", Pattern: pattern, Caller: "203.0.113.77", HTTP: r})
		}
		f.Check(Request{Method: "GET", Path: "/typo/" + hushed, Query: "q=" + hushed + "1", Caller: "203.0.113.77"})
		f.Enter(t.Context(), "job", rules.Param{Name: "q", Value: hushed}, rules.Param{Source: rules.Path, Name: "id", Value: hushed})
	}
	send()
	keys := f.keys()
	f.heat(t, keys...)
	send()
	var left []string
	left = append(left, keys...)
	left = append(left, f.keys()...)
	left = append(left, slices.Collect(maps.Keys(f.totalCounts()))...)
	origins := 0
	f.yieldOrigins(func(o collector.KeyOrigin) bool {
		left = append(left, string(o.Text), string(o.Name))
		origins++
		return true
	})
	left = append(left, back.sent...)
	for _, s := range left {
		if strings.Contains(s, hushed) || strings.Contains(s, "203.0.113") {
			t.Errorf("%q left the process", s)
		}
	}
	if len(keys) < 10 || origins < 10 || len(back.sent) < 10 || f.Stats().Limited == 0 {
		t.Errorf("%d keys, %d origins, %d texts to the backend, %d refused", len(keys), origins, len(back.sent), f.Stats().Limited)
	}
	for _, want := range []string{"any GET /hmac-", "matched GET /u/{id}?key=hmac-", "each job?q=hmac-", "addr GET /u/{id}?addr:ip=hmac-"} {
		if !slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, want) }) {
			t.Errorf("no key begins with %q: %q", want, keys)
		}
	}
}

// A program that supplies the callers itself decides what leaves the process.
func TestOwnCallersAreNotRedacted(t *testing.T) {
	for own, want := range map[bool]string{false: "hmac-", true: "10.0.0.1"} {
		var opts []Option
		if own {
			opts = append(opts, WithCaller(func(*http.Request) string { return "10.0.0.1" }))
		}
		f := newFixture(t, redacting([]string{"addr:ip"}, hotRule(t, "r", "*", byNames("q"), 3600, 1)), opts...)
		req := Request{Method: "GET", Path: "/", Query: "q=1", Pattern: "/", Caller: "10.0.0.1"}
		f.Check(req)
		f.heat(t, f.keys()...)
		f.Check(req)
		var names []string
		f.yieldOrigins(func(o collector.KeyOrigin) bool { names = append(names, string(o.Name)); return true })
		if len(names) != 1 || !strings.HasPrefix(names[0], want) {
			t.Errorf("own callers %v: %q, want %s", own, names, want)
		}
	}
}

// The file contains plain values: exceptions, match and priority compare with those.
func TestRulesCompareBeforeRedaction(t *testing.T) {
	rule := limitRule(t, "r", "GET /s", byNames("q", "header:x-api-key"), 1, 1)
	rule.Except = []rules.Exception{
		{Values: is("q", "free*"), Action: rules.Allow},
		{Values: is("header:x-api-key", "stolen"), Action: rules.Block},
		{Values: is("q", "vip"), Limit: limit(1, 3)},
	}
	ignored := ignoreRule(t, "ignored", "GET /s")
	ignored.Match.Query = is("q", "health")
	f := newFixture(t, redacting([]string{"q", "header:x-api-key"}, ignored, rule))
	passes := func(q, key string) (n int) {
		for range 5 {
			r := &http.Request{Method: "GET", URL: &url.URL{}, Header: http.Header{"X-Api-Key": {key}}}
			if f.Check(Request{Method: "GET", Path: "/s", Pattern: "GET /s", Query: "q=" + q, HTTP: r}).Allowed {
				n++
			}
		}
		return n
	}
	for _, test := range []struct {
		q, key string
		want   int
	}{{"a", "k", 1}, {"a", "k2", 1}, {"free1", "k", 5}, {"health", "k", 5}, {"b", "stolen", 0}, {"vip", "k", 3}, {"%76ip", "k3", 3}, {"hmac-", "k", 1}} {
		if n := passes(test.q, test.key); n != test.want {
			t.Errorf("q=%s of %s: %d of 5 passed, want %d", test.q, test.key, n, test.want)
		}
	}
}

func TestPriorityComparesBeforeRedaction(t *testing.T) {
	rule := limitRule(t, "r", "*", rules.By{}, 1, 10)
	rule.Limit.Priority = &rules.Priority{Name: "plan", First: []string{"gold"}}
	f := newFixture(t, redacting([]string{"plan"}, rule))
	passes := func(plan string) (n int) {
		for range 20 {
			if f.Check(get("/", "/", "plan="+plan)).Allowed {
				n++
			}
		}
		return n
	}
	if free, gold := passes("free"), passes("gold"); free != 5 || gold != 5 {
		t.Errorf("%d free and %d gold requests passed, want 5 and 5", free, gold)
	}
}

// IsHot takes plain values.
func TestIsHotOfRedacted(t *testing.T) {
	f := newFixture(t, redacting([]string{"q"}, hotRule(t, "r", "GET /s", byAll, 1, 1)))
	f.Check(get("GET /s", "/s", "q=b&a=1&q=a"))
	f.heat(t, f.keys()...)
	text := rules.Text("GET /s", rules.Param{Name: "q", Value: "a"}, rules.Param{Name: "q", Value: "b"}, rules.Param{Name: "a", Value: "1"})
	if !f.IsHot(text) || f.IsHot(rules.Text("GET /s", rules.Param{Name: "q", Value: "a"})) {
		t.Errorf("%s is hot: %v", text, f.IsHot(text))
	}
}

// A new redaction key changes the keys from the next request on.
func TestReloadWithAnotherKey(t *testing.T) {
	rules := redacting([]string{"q"}, hotRule(t, "r", "GET /s", byNames("q"), 1, 1))
	f := newFixture(t, rules)
	f.Check(get("GET /s", "/s", "q=a"))
	before := f.keys()
	again := rules
	again.Namespace = "test"
	again.Redact.Key = []byte("fedcba9876543210fedcba9876543210")
	if err := f.Reload(&again); err != nil {
		t.Fatal(err)
	}
	f.Check(get("GET /s", "/s", "q=a"))
	if after := f.keys(); len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Errorf("keys %q and then %q", before, after)
	}
	again.Redact.Key = nil
	if err := f.Reload(&again); err == nil || !strings.Contains(err.Error(), "secrets.redact needs a key") {
		t.Errorf("a reload without a key: %v", err)
	}
}
