package middleware

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// Each kind of rule handles an unreadable body in its own way.
func TestUnread(t *testing.T) {
	const broken = `{"user":`
	named := func(u rules.Unread, by rules.By) rules.Rule {
		r := limitRule(t, "r", "POST /s", by, 1, 2)
		r.Unread = u
		return r
	}
	matched := func(u rules.Unread, by rules.By) rules.Rule {
		r := named(u, by)
		r.Match.Query = []rules.QueryMatch{{Name: "json:op", Value: "login"}}
		return r
	}
	withPriority := named(rules.UnreadLimit, byNames("q"))
	withPriority.Limit.Priority = &rules.Priority{Source: rules.JSON, Name: "plan", First: []string{"gold"}}
	blocking := named(rules.UnreadLimit, byNames("json:user"))
	blocking.Except = []rules.Exception{{Values: is("json:user", "*"), Action: rules.Block}}
	shadowed := named(rules.UnreadReject, byNames("json:user"))
	shadowed.Limit.Mode = rules.ModeShadow
	serving := named(rules.UnreadReject, byNames("json:user"))
	serving.Limit.Mode = rules.ModeServe
	exempt := rules.Rule{ID: "i", Match: rules.Match{Route: parse(t, "*"), Query: []rules.QueryMatch{{Name: "json:op", Value: "*"}}}, Ignore: true}
	for _, test := range []struct {
		name  string
		rules []rules.Rule
		pass  int // passing requests, of four with different queries
		last  rules.Reason
	}{
		{"limit", []rules.Rule{named(rules.UnreadLimit, byNames("json:user", "q"))}, 2, rules.ReasonLimited},
		{"pass", []rules.Rule{named(rules.UnreadPass, byNames("json:user", "q"))}, 4, rules.ReasonNone},
		{"reject", []rules.Rule{named(rules.UnreadReject, byNames("json:user", "q"))}, 0, rules.ReasonUnread},
		{"limit by match", []rules.Rule{matched(rules.UnreadLimit, byNames("q"))}, 2, rules.ReasonLimited},
		{"limit of one bucket", []rules.Rule{matched(rules.UnreadLimit, rules.By{})}, 2, rules.ReasonLimited},
		{"pass by match", []rules.Rule{matched(rules.UnreadPass, byNames("q"))}, 4, rules.ReasonNone},
		{"reject by match", []rules.Rule{matched(rules.UnreadReject, byNames("q"))}, 0, rules.ReasonUnread},
		{"a form's rule", []rules.Rule{named(rules.UnreadReject, byNames("form:user"))}, 4, rules.ReasonNone},
		{"a priority", []rules.Rule{withPriority}, 4, rules.ReasonWithin}, // keys of its own
		{"a block", []rules.Rule{blocking}, 2, rules.ReasonLimited},
		{"shadow", []rules.Rule{shadowed}, 4, rules.ReasonShadow},
		{"serve", []rules.Rule{serving}, 0, rules.ReasonUnread},
		{"no exemption", []rules.Rule{exempt, named(rules.UnreadReject, byNames("json:user"))}, 0, rules.ReasonUnread},
	} {
		f := newFixture(t, rules.Rules{Rules: test.rules})
		pass, last := 0, rules.ReasonNone
		for _, q := range []string{"1", "2", "3", "4"} {
			req, _ := post(jsonType, broken)
			req.Query = "q=" + q
			d := f.Check(req)
			if last = d.Reason; d.Allowed {
				pass++
			}
		}
		if pass != test.pass || last != test.last {
			t.Errorf("%s: %d pass, the last is %v; want %d, %v", test.name, pass, last, test.pass, test.last)
		}
		if s := f.Stats(); s.Unread != (Unread{Malformed: 4}) && test.name != "a form's rule" {
			t.Errorf("%s: %+v", test.name, s.Unread)
		}
	}
}

// If the first matching rule applies and it lets an unreadable body pass, the request goes to the
// next rule, whose matcher is asked then.
func TestUnreadPassesToTheNextRule(t *testing.T) {
	first := limitRule(t, "first", "POST /s", byNames("json:user"), 1, 100)
	first.Unread = rules.UnreadPass
	next := limitRule(t, "next", "POST /s", rules.By{}, 1, 1)
	matched := limitRule(t, "matched", "POST /s", rules.By{}, 1, 1)
	for name, ruleset := range map[string][]rules.Rule{"next": {first, next}, "matched": {first, matched, next}} {
		var opts []Option
		if name == "matched" {
			opts = append(opts, WithMatcher(name, func(*http.Request) (string, bool) { return "x", false }))
		}
		f := newFixture(t, rules.Rules{Evaluate: rules.EvaluateFirst, Rules: ruleset}, opts...)
		for i, test := range []struct {
			body, rule string
			pass       bool
		}{{"{", name, true}, {"{", name, false}, {`{"user":1}`, "first", true}} {
			req, _ := post(jsonType, test.body)
			if d := f.Check(req); d.Allowed != test.pass || d.Rule != test.rule {
				t.Errorf("%s, request %d: %+v", name, i+1, d)
			}
		}
	}
}

// The key of an unreadable body replaces a matcher's key, if the matcher's rule depends on the
// body.
func TestUnreadOfMatchers(t *testing.T) {
	rule := limitRule(t, "r", "POST /s", byNames("q"), 1, 1)
	rule.Match.Query = []rules.QueryMatch{{Name: "json:op", Value: "login"}}
	n := 0
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithMatcher("r", func(*http.Request) (string, bool) { n++; return fmt.Sprint(n), false }))
	for i, test := range []struct {
		body string
		pass bool
	}{{`{"op":"login"}`, true}, {`{"op":"login"}`, true}, {`{"op":"x"}`, true}, {"{", true}, {"{", false}} {
		req, _ := post(jsonType, test.body)
		if d := f.Check(req); d.Allowed != test.pass {
			t.Errorf("request %d: %+v", i+1, d)
		}
	}
	if n != 4 {
		t.Errorf("the matcher was asked %d times", n)
	}
}

// The key for unreadable bodies is counted, becomes hot and is limited like any other. With
// combinations it also counts for the total.
func TestUnreadIsAKey(t *testing.T) {
	for name, by := range map[string]rules.By{
		"names": byNames("form:user", "q"), "combinations": {Kind: rules.ByCombinations, Names: byNames("form:user", "q").Names}, "each": byEach, "all": byAll,
	} {
		rule := hotRule(t, "r", "POST /s", by, 1, 1)
		if len(by.Names) == 0 {
			rule.Match.Query = []rules.QueryMatch{{Name: "form:user", Value: "ann"}}
		}
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
		check := func() rules.Decision {
			req, _ := post("multipart/form-data; boundary=x", "broken")
			req.Query = "q=1&user=%3d%7e"
			return f.Check(req)
		}
		check()
		counts := f.flushed(func(rules.Key) bool { return true })
		want := map[string]int64{"r POST /s?form:~unread": 1}
		if rule.Overlaps() {
			want["r POST /s?*"] = 1
		}
		if len(counts) != len(want) || counts["r POST /s?form:~unread"] != 1 || rule.Overlaps() && counts["r POST /s?*"] != 1 {
			t.Errorf("%s: %v, want %v", name, counts, want)
		}
		f.heat(t, "r POST /s?form:~unread")
		if first, second := check(), check(); !first.Allowed || second.Allowed || second.Reason != rules.ReasonLimited {
			t.Errorf("%s, hot: %+v, %+v", name, first, second)
		}
	}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user", "form:~unread"), 1, 1)}})
	req, _ := post(formType, "~unread=1&user=~unread&form:~unread=1")
	f.Check(req)
	if got := f.keys(); !slices.Equal(got, []string{"r POST /s?form:user=~unread&form:~unread=1"}) {
		t.Errorf("a request spells %q", got)
	}
}

// These requests declare a body that is not read.
func TestBodiesThatAreNotRead(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   Unread
	}{
		"compressed":        {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, Unread{Encoded: 1}},
		"compressed twice":  {func(r *http.Request) { r.Header["Content-Encoding"] = []string{"identity", "br"} }, Unread{Encoded: 1}},
		"an upgrade":        {func(r *http.Request) { r.Header = upgrade(r.Header) }, Unread{Upgraded: 1}},
		"CONNECT":           {func(r *http.Request) { r.Method = "CONNECT"; r.Header.Set("Content-Type", "multipart/form-data") }, Unread{Upgraded: 1}},
		"declared as large": {func(r *http.Request) { r.ContentLength = rules.DefaultMaxBody + 1 }, Unread{TooLarge: 1}},
	} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "/s", byNames("form:user"), 1, 1)}})
		req, body := post(formType, "user=ann")
		test.change(req.HTTP)
		f.Check(req)
		if got := f.keys(); !slices.Equal(got, []string{"r POST /s?form:~unread"}) || body.reads > 0 || f.Stats().Unread != test.want {
			if name != "CONNECT" || len(got) != 1 || body.reads > 0 {
				t.Errorf("%s: keys %q, %d reads, %+v", name, got, body.reads, f.Stats().Unread)
			}
		}
	}
	for name, change := range map[string]func(*http.Request){
		"identity":                   func(r *http.Request) { r.Header.Set("Content-Encoding", "Identity") },
		"an upgrade of the next hop": func(r *http.Request) { r.Header.Set("Upgrade", "h2c") },
		"a connection that is kept": func(r *http.Request) {
			r.Header.Set("Connection", "keep-alive, upgraded")
			r.Header.Set("Upgrade", "x")
		},
		"a length that is not known":   func(r *http.Request) { r.ContentLength = -1 },
		"a length that is not honest":  func(r *http.Request) { r.ContentLength = 1 },
		"a type that comes once more":  func(r *http.Request) { r.Header.Add("Content-Type", "text/plain") },
		"a type with malformed params": func(r *http.Request) { r.Header.Set("Content-Type", formType+"; a=1; a=2") },
	} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
		req, _ := post(formType, "user=ann")
		change(req.HTTP)
		f.Check(req)
		if got := f.keys(); !slices.Equal(got, []string{"r POST /s?form:user=ann"}) || f.Stats().Bodies != 1 {
			t.Errorf("%s: keys %q", name, got)
		}
	}
	// Only POST, PUT and PATCH have a form in their body, as for net/http.
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "/s", byNames("form:user"), 1, 1)}})
	for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS"} {
		req, body := post(formType, "user=ann")
		req.Method, req.HTTP.Method, req.Query = method, method, "user=bob"
		if f.Check(req); body.reads > 0 {
			t.Errorf("%s: the body was read", method)
		}
		if got := f.keys(); len(got) != 1 || !strings.HasSuffix(got[0], "?form:user=bob") {
			t.Errorf("%s: keys %q", method, got)
		}
	}
	// Requests that are not HTTP may bring their own values.
	job := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "login", byNames("form:user"), 1, 1)}})
	job.Enter(t.Context(), "login", rules.Param{Source: rules.Form, Name: "user", Value: "ann"})
	if got := job.keys(); !slices.Equal(got, []string{"r login?form:user=ann"}) {
		t.Errorf("Enter: keys %q", got)
	}
	// A request without a net/http request has no values.
	f.Check(Request{Method: "POST", Path: "/s", Query: "user=ann", Pattern: "/s"})
	if got := f.keys(); len(got) != 0 {
		t.Errorf("without HTTP: keys %q", got)
	}
}

func upgrade(h http.Header) http.Header {
	h.Set("Connection", "keep-alive, Upgrade")
	h.Set("Upgrade", "websocket")
	return h
}
