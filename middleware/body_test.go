package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hotparam/hotparam"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// spiedBody is a body that counts how often it is read.
type spiedBody struct {
	io.Reader
	reads, closes int
}

func (s *spiedBody) Read(p []byte) (int, error) { s.reads++; return s.Reader.Read(p) }
func (s *spiedBody) Close() error               { s.closes++; return nil }

// post returns a POST of /s with a body, as a guard gets it, and the body.
func post(contentType, text string) (Request, *spiedBody) {
	body := &spiedBody{Reader: strings.NewReader(text)}
	r := httptest.NewRequest("POST", "/s", body)
	r.ContentLength = int64(len(text))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return Request{Context: r.Context(), Method: "POST", Path: "/s", Pattern: "POST /s", HTTP: r}, body
}

// Each value of the parameters that a rule names is a key, wherever the body has it.
func TestKeysOfBodies(t *testing.T) {
	multipart := "--x\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nann\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"user\"\r\n\r\nuser=bob\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"user\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nb=C3=B6b\r\n--x--\r\nepilogue"
	unread := func(source string) []string { return []string{source + ":~unread"} }
	user := func(values ...string) (keys []string) {
		for _, v := range values {
			keys = append(keys, "form:user="+v)
		}
		return keys
	}
	id := func(values ...string) (keys []string) {
		for _, v := range values {
			keys = append(keys, `json:user.id=`+v)
		}
		return keys
	}
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	for _, test := range []struct {
		name, contentType, query, body string
		want                           []string
	}{
		{"form", formType, "", "user=ann&x=1", user("ann")},
		{"form and query", formType, "user=bob&x=2", "user=ann", user("ann", "bob")},
		{"a value twice", formType, "user=ann", "user=ann&user=%61nn", user("ann")},
		{"decoded", formType, "", "us%65r=a+b%26", user("a%20b%26")},
		{"no value", formType, "", "user", user("")},
		{"invalid escape", formType, "", "user=%zz&user=ann", user("%25zz", "ann")},
		{"other fields", formType, "", "User=ann&user2=x", nil},
		{"query alone", "", "user=ann", "user=bob", user("ann")},
		{"charset", "Application/X-WWW-Form-Urlencoded ; charset=UTF-8", "", "user=ann", user("ann")},
		{"malformed parameters", formType + "; =;;", "", "user=ann", user("ann")},
		{"another type", "text/plain", "", "user=ann", nil},
		{"a similar type", formType + "2", "", "user=ann", nil},
		{"multipart", "multipart/form-data; boundary=x", "user=cat", multipart, user("ann", "b%C3%B6b", "cat")},
		{"multipart without a boundary", "multipart/form-data", "", multipart, unread("form")},
		{"multipart without an end", "multipart/form-data; boundary=x", "", multipart[:len(multipart)-14], unread("form")},
		{"multipart of another kind", "multipart/mixed; boundary=x", "", multipart, nil},
		{"JSON", jsonType, "", ` {"user" : {"id" : "ann"} } `, id("ann")},
		{"JSON by suffix", "application/Ld+Json; profile=x", "", `{"user":{"id":1}}`, id("1")},
		{"scalars", jsonType, "", `{"user":{"id":1.50e1}, "user":{"id":true}, "user":{"id":false}, "user":{"id":null}, "user":{"id":{}}, "user":{"id":["x"]}, "user":[{"id":"y"}], "user":"id"}`, id("1.50e1", "false", "true")},
		{"names twice", jsonType, "", `{"user":{"id":"ann","id":"bob"},"user":{"id":"cat"}}`, id("ann", "bob", "cat")},
		{"names in another case", jsonType, "", `{"USER":{"Id":"ann"},"u\u0073er":{"ıd":"no","ID":"bob"},"uſer":{"id":"cat"}}`, id("ann", "bob", "cat")},
		{"escapes", jsonType, "", `{"user":{"id":"\u0061\ud83d\ude00\ud800\"/"}}`, id("a%F0%9F%98%80%EF%BF%BD%22%2F")},
		{"no text", jsonType, "", "{\"user\":{\"id\":\"a\xff\"}}", id("a%EF%BF%BD")},
		{"huge number", jsonType, "", `{"user":{"id":1e99999999999}}`, id("1e99999999999")},
		{"deep", jsonType, "", `{"x":` + deep + `,"user":{"id":1}}`, id("1")},
		{"too deep", jsonType, "", `{"x":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`, unread("json")},
		{"not ended", jsonType, "", `{"user":{"id":"ann"}`, unread("json")},
		{"garbage behind", jsonType, "", `{"user":{"id":"ann"}} x`, unread("json")},
		{"two documents", jsonType, "", `{"user":{"id":"ann"}}{}`, unread("json")},
		{"byte order mark", jsonType, "", "\ufeff" + `{"user":{"id":"ann"}}`, unread("json")},
		{"NaN", jsonType, "", `{"user":{"id":NaN}}`, unread("json")},
		{"a scalar", jsonType, "", `"ann"`, nil},
		{"a form that is JSON", formType, "", `{"user":{"id":"ann"}}`, nil},
		{"nothing", jsonType, "", "", nil},
		{"blanks", jsonType, "", " ", unread("json")},
		{"too large", formType, "", "user=ann&x=" + strings.Repeat("x", hotparam.DefaultMaxBody), unread("form")},
		{"just large enough", formType, "", "user=ann&x=" + strings.Repeat("x", hotparam.DefaultMaxBody-len("user=ann&x=")), user("ann")},
	} {
		for _, sized := range []bool{true, false} {
			f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user", "json:user.id"), 0, 0)}})
			req, body := post(test.contentType, test.body)
			req.Query = test.query
			if !sized {
				req.HTTP.ContentLength = -1
				body.Reader = iotest.OneByteReader(body.Reader)
			}
			f.Check(req)
			var got []string
			for _, key := range f.keys() {
				got = append(got, strings.TrimPrefix(key, "r POST /s?"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: keys %q, want %q", test.name, got, test.want)
			}
			if text, err := io.ReadAll(req.HTTP.Body); string(text) != test.body || err != nil {
				t.Errorf("%s: the handler reads %d bytes, %v, want %d", test.name, len(text), err, len(test.body))
			}
			if err := req.HTTP.Body.Close(); err != nil || body.closes != 1 {
				t.Errorf("%s: closed %d times, %v", test.name, body.closes, err)
			}
			if held := f.bodies.held.Load(); held != 0 {
				t.Errorf("%s: %d bytes are held", test.name, held)
			}
			if req.HTTP.Form != nil || req.HTTP.PostForm != nil || req.HTTP.MultipartForm != nil {
				t.Errorf("%s: the request's form is set", test.name)
			}
		}
	}
}

// Paths lead through objects by name and through arrays by a star.
func TestPathsOfJSON(t *testing.T) {
	const text = `{"items":[{"id":1,"tags":["a","b",["c"]]},{"id":2},3,[{"id":4}]],"a.b":{"*":5},"a":{"b":6},"items":{"id":7},"*":8,"":9}`
	for path, want := range map[string][]string{
		"items.*.id": {"1", "2"}, "items.id": {"7"}, "items.*": {"3"}, "items.*.*.id": {"4"}, "items.*.tags.*": {"a", "b"}, "items.*.tags.*.*": {"c"},
		`a\.b.\*`: {"5"}, "a.b": {"6"}, `\*`: {"8"}, "*": nil, "items": nil, "items.0.id": nil, "a.b.c": nil,
	} {
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("json:"+path), 0, 0)}})
		req, _ := post(jsonType, text)
		f.Check(req)
		var got []string
		for _, key := range f.keys() {
			_, value, _ := strings.Cut(key, "=")
			got = append(got, value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// More than 64 paths are found, too.
func TestManyPaths(t *testing.T) {
	var rules []hotparam.Rule
	var text strings.Builder
	for i := range 100 {
		name := string(rune('a'+i/10)) + string(rune('a'+i%10))
		rules = append(rules, hotRule(t, "r"+name, "POST /s", byNames("json:"+name), 0, 0))
		text.WriteString(`,"` + name + `":1`)
	}
	f := newFixture(t, hotparam.Rules{Rules: rules})
	req, _ := post(jsonType, "{"+text.String()[1:]+"}")
	f.Check(req)
	if got := f.keys(); len(got) != 100 {
		t.Errorf("%d keys, want 100", len(got))
	}
}

// What a body that cannot be read does to each kind of rule.
func TestUnread(t *testing.T) {
	const broken = `{"user":`
	named := func(u hotparam.Unread, by hotparam.By) hotparam.Rule {
		r := limitRule(t, "r", "POST /s", by, 1, 2)
		r.Unread = u
		return r
	}
	matched := func(u hotparam.Unread, by hotparam.By) hotparam.Rule {
		r := named(u, by)
		r.Match.Query = []hotparam.QueryMatch{{Name: "json:op", Value: "login"}}
		return r
	}
	withPriority := named(hotparam.UnreadLimit, byNames("q"))
	withPriority.Limit.Priority = &hotparam.Priority{Source: hotparam.JSON, Name: "plan", First: []string{"gold"}}
	blocking := named(hotparam.UnreadLimit, byNames("json:user"))
	blocking.Except = []hotparam.Exception{{Values: is("json:user", "*"), Action: hotparam.Block}}
	shadowed := named(hotparam.UnreadReject, byNames("json:user"))
	shadowed.Limit.Mode = hotparam.ModeShadow
	serving := named(hotparam.UnreadReject, byNames("json:user"))
	serving.Limit.Mode = hotparam.ModeServe
	exempt := hotparam.Rule{ID: "i", Match: hotparam.Match{Route: parse(t, "*"), Query: []hotparam.QueryMatch{{Name: "json:op", Value: "*"}}}, Ignore: true}
	for _, test := range []struct {
		name  string
		rules []hotparam.Rule
		pass  int // of four requests with different queries
		last  hotparam.Reason
	}{
		{"limit", []hotparam.Rule{named(hotparam.UnreadLimit, byNames("json:user", "q"))}, 2, hotparam.ReasonLimited},
		{"pass", []hotparam.Rule{named(hotparam.UnreadPass, byNames("json:user", "q"))}, 4, hotparam.ReasonNone},
		{"reject", []hotparam.Rule{named(hotparam.UnreadReject, byNames("json:user", "q"))}, 0, hotparam.ReasonUnread},
		{"limit by match", []hotparam.Rule{matched(hotparam.UnreadLimit, byNames("q"))}, 2, hotparam.ReasonLimited},
		{"limit of one bucket", []hotparam.Rule{matched(hotparam.UnreadLimit, hotparam.By{})}, 2, hotparam.ReasonLimited},
		{"pass by match", []hotparam.Rule{matched(hotparam.UnreadPass, byNames("q"))}, 4, hotparam.ReasonNone},
		{"reject by match", []hotparam.Rule{matched(hotparam.UnreadReject, byNames("q"))}, 0, hotparam.ReasonUnread},
		{"a form's rule", []hotparam.Rule{named(hotparam.UnreadReject, byNames("form:user"))}, 4, hotparam.ReasonNone},
		{"a priority", []hotparam.Rule{withPriority}, 4, hotparam.ReasonWithin}, // keys of its own
		{"a block", []hotparam.Rule{blocking}, 2, hotparam.ReasonLimited},
		{"shadow", []hotparam.Rule{shadowed}, 4, hotparam.ReasonShadow},
		{"serve", []hotparam.Rule{serving}, 0, hotparam.ReasonUnread},
		{"no exemption", []hotparam.Rule{exempt, named(hotparam.UnreadReject, byNames("json:user"))}, 0, hotparam.ReasonUnread},
	} {
		f := newFixture(t, hotparam.Rules{Rules: test.rules})
		pass, last := 0, hotparam.ReasonNone
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

// Where the first rule that matches applies, one that passes a body that cannot be read
// leaves the request to the next, whose matcher is asked then.
func TestUnreadPassesToTheNextRule(t *testing.T) {
	first := limitRule(t, "first", "POST /s", byNames("json:user"), 1, 100)
	first.Unread = hotparam.UnreadPass
	next := limitRule(t, "next", "POST /s", hotparam.By{}, 1, 1)
	matched := limitRule(t, "matched", "POST /s", hotparam.By{}, 1, 1)
	for name, rules := range map[string][]hotparam.Rule{"next": {first, next}, "matched": {first, matched, next}} {
		var opts []Option
		if name == "matched" {
			opts = append(opts, WithMatcher(name, func(*http.Request) (string, bool) { return "x", false }))
		}
		f := newFixture(t, hotparam.Rules{Evaluate: hotparam.EvaluateFirst, Rules: rules}, opts...)
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

// A matcher's key gives way to that of a body that cannot be read, if its rule depends on it.
func TestUnreadOfMatchers(t *testing.T) {
	rule := limitRule(t, "r", "POST /s", byNames("q"), 1, 1)
	rule.Match.Query = []hotparam.QueryMatch{{Name: "json:op", Value: "login"}}
	n := 0
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{rule}}, WithMatcher("r", func(*http.Request) (string, bool) { n++; return fmt.Sprint(n), false }))
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

// The key for bodies that cannot be read is counted, becomes hot and is limited like any
// other; of combinations it is counted for the total, too.
func TestUnreadIsAKey(t *testing.T) {
	for name, by := range map[string]hotparam.By{
		"names": byNames("form:user", "q"), "combinations": {Kind: hotparam.ByCombinations, Names: byNames("form:user", "q").Names}, "each": byEach, "all": byAll,
	} {
		rule := hotRule(t, "r", "POST /s", by, 1, 1)
		if len(by.Names) == 0 {
			rule.Match.Query = []hotparam.QueryMatch{{Name: "form:user", Value: "ann"}}
		}
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{rule}})
		check := func() hotparam.Decision {
			req, _ := post("multipart/form-data; boundary=x", "broken")
			req.Query = "q=1&user=%3d%7e"
			return f.Check(req)
		}
		check()
		counts := f.flushed(func(hotparam.Key) bool { return true })
		want := map[string]int64{"r POST /s?form:~unread": 1}
		if rule.Overlaps() {
			want["r POST /s?*"] = 1
		}
		if len(counts) != len(want) || counts["r POST /s?form:~unread"] != 1 || rule.Overlaps() && counts["r POST /s?*"] != 1 {
			t.Errorf("%s: %v, want %v", name, counts, want)
		}
		f.heat(t, "r POST /s?form:~unread")
		if first, second := check(), check(); !first.Allowed || second.Allowed || second.Reason != hotparam.ReasonLimited {
			t.Errorf("%s, hot: %+v, %+v", name, first, second)
		}
	}
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user", "form:~unread"), 1, 1)}})
	req, _ := post(formType, "~unread=1&user=~unread&form:~unread=1")
	f.Check(req)
	if got := f.keys(); !slices.Equal(got, []string{"r POST /s?form:user=~unread&form:~unread=1"}) {
		t.Errorf("a request spells %q", got)
	}
}

// A body is read only if a rule depends on it, and after all that may deny without it.
func TestBodiesAreReadLast(t *testing.T) {
	byUser := func(id string) hotparam.Rule { return limitRule(t, id, "POST /s", byNames("form:user"), 1, 100) }
	elsewhere := byUser("elsewhere")
	elsewhere.Match.Route = parse(t, "POST /other")
	ofFree := byUser("free")
	ofFree.Match.Query = []hotparam.QueryMatch{{Name: "form:op", Value: "x"}, {Name: "header:x-plan", Value: "free"}}
	ofGold := byUser("gold")
	ofGold.Match.Query = []hotparam.QueryMatch{{Name: "form:op", Value: "x"}, {Name: "header:x-plan", Value: "gold"}}
	once := limitRule(t, "once", "*", hotparam.By{}, 1, 1)
	shadow := once
	shadow.ID, shadow.Limit = "shadow", limit(1, 1)
	shadow.Limit.Mode = hotparam.ModeShadow
	hot := hotRule(t, "hot", "POST /s", byNames("q"), 1, 100)
	hot.Limit.Priority = &hotparam.Priority{Source: hotparam.Form, Name: "plan", First: []string{"gold"}}
	exempt := hotparam.Rule{ID: "i", Match: hotparam.Match{Route: parse(t, "*"), Query: []hotparam.QueryMatch{{Name: "form:user", Value: "ann"}}}, Ignore: true}
	for _, test := range []struct {
		name        string
		rules       hotparam.Rules
		readsFirst  bool // the first request's body is read
		readsSecond bool
		pass        bool // the second passes
	}{
		{"no rule", hotparam.Rules{Rules: []hotparam.Rule{elsewhere}}, false, false, true},
		{"JSON", hotparam.Rules{Rules: []hotparam.Rule{limitRule(t, "r", "POST /s", byNames("json:user"), 1, 1)}}, false, false, true},
		{"by", hotparam.Rules{Rules: []hotparam.Rule{byUser("r")}}, true, true, true},
		{"match", hotparam.Rules{Rules: []hotparam.Rule{ofFree}}, true, true, true},
		{"a match that cannot be", hotparam.Rules{Rules: []hotparam.Rule{ofGold}}, false, false, true},
		{"denied before", hotparam.Rules{Rules: []hotparam.Rule{byUser("r"), once}}, true, false, false},
		{"denied in shadow", hotparam.Rules{Rules: []hotparam.Rule{byUser("r"), shadow}}, true, true, true},
		{"denied by the first rule", hotparam.Rules{Evaluate: hotparam.EvaluateFirst, Rules: []hotparam.Rule{once, byUser("r")}}, false, false, false},
		{"first", hotparam.Rules{Evaluate: hotparam.EvaluateFirst, Rules: []hotparam.Rule{byUser("r"), once}}, true, true, true},
		{"first, elsewhere", hotparam.Rules{Evaluate: hotparam.EvaluateFirst, Rules: []hotparam.Rule{ofGold, once}}, false, false, false},
		{"a priority of keys that are not hot", hotparam.Rules{Rules: []hotparam.Rule{hot}}, false, false, true},
		{"exempt", hotparam.Rules{Rules: []hotparam.Rule{once, exempt}}, true, true, true},
		{"ignored before", hotparam.Rules{Rules: []hotparam.Rule{byUser("r"), ignoreRule(t, "i", "*")}}, false, false, true},
	} {
		f := newFixture(t, test.rules)
		for i, reads := range []bool{test.readsFirst, test.readsSecond} {
			req, body := post(formType, "user=ann&op=x")
			req.HTTP.Header.Set("X-Plan", "free")
			req.Query = "q=1"
			d := f.Check(req)
			if (body.reads > 0) != reads {
				t.Errorf("%s: request %d was read %d times", test.name, i+1, body.reads)
			}
			if _, replaced := req.HTTP.Body.(*heldBody); replaced != reads {
				t.Errorf("%s: request %d: the body was replaced: %v", test.name, i+1, replaced)
			}
			if i == 1 && d.Allowed != test.pass {
				t.Errorf("%s: %+v", test.name, d)
			}
		}
	}
}

// The backend is asked before a body is read, and once more for the rules that depend on it.
// What it granted is given back if these deny.
func TestBackendIsAskedBeforeBodies(t *testing.T) {
	backend := newShared(t)
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{
		exactly(limitRule(t, "user", "POST /s", byNames("form:user"), 1, 1), ""), exactly(limitRule(t, "all", "*", hotparam.By{}, 1, 3), ""),
	}}, WithBackend(backend))
	const all, user = "all * ", "user POST /s?form:user="
	for _, test := range []struct {
		user  string
		reads bool
		rule  string
		asked [][]string
	}{
		{"ann", true, "", [][]string{{all + "take"}, {user + "ann take"}}},
		{"ann", true, "user", [][]string{{all + "take"}, {user + "ann take"}, {all + "return"}}},
		{"bob", true, "", [][]string{{all + "take"}, {user + "bob take"}}},
		{"cat", true, "", [][]string{{all + "take"}, {user + "cat take"}}},
		{"dan", false, "all", [][]string{{all + "take"}}},
	} {
		req, body := post(formType, "user="+test.user)
		d := f.Check(req)
		if asked := backend.asked(); d.Allowed != (test.rule == "") || !d.Allowed && d.Rule != test.rule || (body.reads > 0) != test.reads || !reflect.DeepEqual(asked, test.asked) {
			t.Errorf("%s: %+v, %d reads, asked %q, want %q", test.user, d, body.reads, asked, test.asked)
		}
	}
}

// Requests whose body is not read, though they declare one.
func TestBodiesThatAreNotRead(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   Unread
	}{
		"compressed":        {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, Unread{Encoded: 1}},
		"compressed twice":  {func(r *http.Request) { r.Header["Content-Encoding"] = []string{"identity", "br"} }, Unread{Encoded: 1}},
		"an upgrade":        {func(r *http.Request) { r.Header = upgrade(r.Header) }, Unread{Upgraded: 1}},
		"CONNECT":           {func(r *http.Request) { r.Method = "CONNECT"; r.Header.Set("Content-Type", "multipart/form-data") }, Unread{Upgraded: 1}},
		"declared as large": {func(r *http.Request) { r.ContentLength = hotparam.DefaultMaxBody + 1 }, Unread{TooLarge: 1}},
	} {
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "/s", byNames("form:user"), 1, 1)}})
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
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
		req, _ := post(formType, "user=ann")
		change(req.HTTP)
		f.Check(req)
		if got := f.keys(); !slices.Equal(got, []string{"r POST /s?form:user=ann"}) || f.Stats().Bodies != 1 {
			t.Errorf("%s: keys %q", name, got)
		}
	}
	// A form is in the body of POST, PUT and PATCH alone, as for net/http.
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "/s", byNames("form:user"), 1, 1)}})
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
	// What is no HTTP may bring values of its own.
	job := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "login", byNames("form:user"), 1, 1)}})
	job.Enter(t.Context(), "login", hotparam.Param{Source: hotparam.Form, Name: "user", Value: "ann"})
	if got := job.keys(); !slices.Equal(got, []string{"r login?form:user=ann"}) {
		t.Errorf("Enter: keys %q", got)
	}
	// Without a request of net/http there are no values.
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

// A read that fails is told to the handler at the same place.
func TestErrorsAreReplayed(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		body func() io.Reader
		want Unread
	}{
		"at once": {func() io.Reader { return iotest.ErrReader(broken) }, Unread{Failed: 1}},
		"later":   {func() io.Reader { return io.MultiReader(strings.NewReader("user=ann"), iotest.ErrReader(broken)) }, Unread{Failed: 1}},
		"with the last": {func() io.Reader {
			return iotest.DataErrReader(io.MultiReader(strings.NewReader("user=ann"), iotest.ErrReader(broken)))
		}, Unread{Failed: 1}},
		"once": {func() io.Reader { return iotest.TimeoutReader(strings.NewReader("user=ann")) }, Unread{Failed: 1}},
		"behind the limit": {func() io.Reader {
			return io.MultiReader(strings.NewReader(strings.Repeat("x", 70_000)), iotest.ErrReader(broken))
		}, Unread{TooLarge: 1}},
		"a smaller limit":   {func() io.Reader { return http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("user=ann")), 4) }, Unread{TooLarge: 1}},
		"nothing, for ever": {func() io.Reader { return &idle{n: 1000, Reader: strings.NewReader("user=ann")} }, Unread{Failed: 1}},
	} {
		wantText, wantErr := io.ReadAll(test.body())
		f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
		req, body := post(formType, "")
		req.HTTP.ContentLength, body.Reader = -1, test.body()
		f.Check(req)
		text, err := io.ReadAll(req.HTTP.Body)
		if string(text) != string(wantText) || !sameError(err, wantErr) || f.Stats().Unread != test.want {
			t.Errorf("%s: %d bytes, %v, %+v; want %d, %v", name, len(text), err, f.Stats().Unread, len(wantText), wantErr)
		}
	}
}

func sameError(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// idle is a reader that returns nothing n times.
type idle struct {
	n int
	io.Reader
}

func (r *idle) Read(p []byte) (int, error) {
	if r.n--; r.n >= 0 {
		return 0, nil
	}
	return r.Reader.Read(p)
}

// A request whose context ends while a client trickles is read no further, and the handler
// still gets all.
func TestContextEndsARead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
	req, body := post(formType, "")
	req.Context, req.HTTP.ContentLength = ctx, -1
	pipe, client := io.Pipe()
	body.Reader = pipe
	go func() {
		io.WriteString(client, "user=")
		cancel()
		io.WriteString(client, "a") // whatever comes first, this read is the last
		io.WriteString(client, "nn")
		client.Close()
	}()
	f.Check(req)
	if text, err := io.ReadAll(req.HTTP.Body); string(text) != "user=ann" || err != nil || f.Stats().Unread != (Unread{Failed: 1}) {
		t.Errorf("%q, %v, %+v", text, err, f.Stats().Unread)
	}
	late, body := post(formType, "user=ann")
	late.Context = ctx
	if f.Check(late); body.reads > 0 || f.Stats().Unread != (Unread{Failed: 2}) {
		t.Errorf("after the end: %d reads, %+v", body.reads, f.Stats().Unread)
	}
}

// The bytes that are held are bounded over all requests, and are given back by whatever ends
// their use.
func TestHeldBytesAreBounded(t *testing.T) {
	const size = 10_000
	rules := hotparam.Rules{
		Rules:  []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)},
		Bodies: hotparam.Bodies{Max: 1 << 15, Total: 1 << 16},
	}
	for name, end := range map[string]func(Request, context.CancelFunc){
		"read":  func(r Request, _ context.CancelFunc) { io.Copy(io.Discard, r.HTTP.Body) },
		"close": func(r Request, _ context.CancelFunc) { r.HTTP.Body.Close() },
		"end":   func(_ Request, cancel context.CancelFunc) { cancel() },
	} {
		f := newFixture(t, rules)
		var ends []func()
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			req, _ := post(formType, "user=ann&x="+strings.Repeat("x", size))
			req.Context = ctx
			f.Check(req)
			ends = append(ends, func() { end(req, cancel); end(req, cancel); cancel() })
			if held := f.bodies.held.Load(); held > 1<<16 {
				t.Fatalf("%s: %d bytes are held", name, held)
			}
		}
		s := f.Stats()
		if s.Bodies < 3 || s.Bodies > 6 || s.Unread != (Unread{NoRoom: 100 - s.Bodies}) {
			t.Errorf("%s: %d bodies, %+v", name, s.Bodies, s.Unread)
		}
		for _, end := range ends {
			end()
		}
		for deadline := time.Now().Add(10 * time.Second); f.bodies.held.Load() != 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // a context calls from a goroutine
		}
		if held := f.bodies.held.Load(); held != 0 {
			t.Errorf("%s: %d bytes are held after all have ended", name, held)
		}
		req, _ := post(formType, "user=ann")
		if f.Check(req); f.Stats().Bodies != s.Bodies+1 {
			t.Errorf("%s: there is no room after all have ended", name)
		}
	}
}

// A handler that reads nothing, or panics, holds nothing once it has returned.
func TestHandlerGivesBack(t *testing.T) {
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{limitRule(t, "r", "POST /s", byNames("form:user"), 1, 2)}})
	f.heat(t)
	inside := int64(0)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /s", func(_ http.ResponseWriter, r *http.Request) {
		inside = f.bodies.held.Load()
		if r.URL.RawQuery == "panic" {
			panic(http.ErrAbortHandler)
		}
	})
	for i, query := range []string{"", "panic", "refused"} {
		inside = 0
		req, _ := post(formType, "user=ann")
		req.HTTP.URL.RawQuery = query
		func() {
			defer func() { _ = recover() }()
			f.Handler(mux).ServeHTTP(httptest.NewRecorder(), req.HTTP)
		}()
		if held := f.bodies.held.Load(); held != 0 || (inside > 0) != (i < 2) {
			t.Errorf("%q: %d bytes are held, %d were inside", query, held, inside)
		}
	}
}

// A body whose Read panics passes, and loses nothing.
func TestBodyThatPanics(t *testing.T) {
	f := newFixture(t, hotparam.Rules{Rules: []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user"), 1, 1)}})
	req, body := post(formType, "")
	req.HTTP.ContentLength, body.Reader = -1, io.MultiReader(strings.NewReader("user="), panickingReader{}, strings.NewReader("ann"))
	if d := f.Check(req); !d.Allowed || d.Reason != hotparam.ReasonOpen || f.Stats().Panics != 1 {
		t.Errorf("%+v", d)
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(req.HTTP.Body, head); !bytes.Equal(head, []byte("user=")) || err != nil {
		t.Errorf("%q, %v", head, err)
	}
}

type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("read") }

// Floods of fields and of values take bounded room and time.
func TestFloodsOfFields(t *testing.T) {
	rules := hotparam.Rules{
		Rules:  []hotparam.Rule{hotRule(t, "r", "POST /s", byNames("form:user", "json:a.*.id"), 0, 0)},
		Bodies: hotparam.Bodies{Max: 1 << 20},
	}
	var fields, ids, parts strings.Builder
	for i := range 10_000 {
		v := string(rune('a'+i%26)) + strings.Repeat("v", i%40)
		fields.WriteString("user=" + v + "&" + v + "=" + v + "&")
		ids.WriteString(`{"id":"` + v + `\u0061"},`)
		if i < 2_000 {
			parts.WriteString("--x\r\nContent-Disposition: form-data; name=user\r\n\r\n" + v + "\r\n")
		}
	}
	for name, test := range map[string]struct{ contentType, text string }{
		"form": {formType, fields.String()}, "JSON": {jsonType, `{"a":[` + ids.String() + `{}]}`}, "multipart": {"multipart/form-data; boundary=x", parts.String() + "--x--"},
		"fields without a value": {formType, strings.Repeat("a&", 1<<19-10) + "user"},
		"deep":                   {jsonType, `{"a":[{"id":1}],"b":` + strings.Repeat(`{"a":[`, 4000) + strings.Repeat("]}", 4000) + "}"},
	} {
		f := newFixture(t, rules)
		req, _ := post(test.contentType, test.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		f.Check(req)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 12<<20 {
			t.Errorf("%s: %d bytes were allocated for a body of %d", name, after.TotalAlloc-before.TotalAlloc, len(test.text))
		}
		if took := time.Since(start); took > 2*time.Second { // some 20 ms
			t.Errorf("%s: %v", name, took)
		}
		keys := f.keys()
		if s := f.Stats(); s.Bodies != 1 || len(keys) == 0 || len(keys) > hotparam.MaxKeys+1 || len(keys) > 1 && !slices.Contains(keys, "r POST /s?~more") {
			t.Errorf("%s: %d keys, %+v", name, len(keys), s)
		}
	}
}
