package middleware

import (
	"io"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hotparam/hotparam/middleware/internal/bodies"
	"github.com/hotparam/hotparam/rules"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// spiedBody is a body that counts its reads.
type spiedBody struct {
	io.Reader
	reads, closes int
}

func (s *spiedBody) Read(p []byte) (int, error) { s.reads++; return s.Reader.Read(p) }

func (s *spiedBody) Close() error { s.closes++; return nil }

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

// Each value of the parameters that a rule names makes a key, wherever it is in the body.
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
		{"multipart without a part", "multipart/form-data; boundary=x", "", "user=ann", unread("form")},
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
		{"too large", formType, "", "user=ann&x=" + strings.Repeat("x", rules.DefaultMaxBody), unread("form")},
		{"just large enough", formType, "", "user=ann&x=" + strings.Repeat("x", rules.DefaultMaxBody-len("user=ann&x=")), user("ann")},
	} {
		for _, sized := range []bool{true, false} {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("form:user", "json:user.id"), 0, 0)}})
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
			if held := f.bodies.Held.Load(); held != 0 {
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
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "POST /s", byNames("json:"+path), 0, 0)}})
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

// More than 64 paths work, too.
func TestManyPaths(t *testing.T) {
	var ruleset []rules.Rule
	var text strings.Builder
	for i := range 100 {
		name := string(rune('a'+i/10)) + string(rune('a'+i%10))
		ruleset = append(ruleset, hotRule(t, "r"+name, "POST /s", byNames("json:"+name), 0, 0))
		text.WriteString(`,"` + name + `":1`)
	}
	f := newFixture(t, rules.Rules{Rules: ruleset})
	req, _ := post(jsonType, "{"+text.String()[1:]+"}")
	f.Check(req)
	if got := f.keys(); len(got) != 100 {
		t.Errorf("%d keys, want 100", len(got))
	}
}

// A body is read only if a rule depends on it, and after all rules that may deny without it.
func TestBodiesAreReadLast(t *testing.T) {
	byUser := func(id string) rules.Rule { return limitRule(t, id, "POST /s", byNames("form:user"), 1, 100) }
	elsewhere := byUser("elsewhere")
	elsewhere.Match.Route = parse(t, "POST /other")
	ofFree := byUser("free")
	ofFree.Match.Query = []rules.QueryMatch{{Name: "form:op", Value: "x"}, {Name: "header:x-plan", Value: "free"}}
	ofGold := byUser("gold")
	ofGold.Match.Query = []rules.QueryMatch{{Name: "form:op", Value: "x"}, {Name: "header:x-plan", Value: "gold"}}
	once := limitRule(t, "once", "*", rules.By{}, 1, 1)
	shadow := once
	shadow.ID, shadow.Limit = "shadow", limit(1, 1)
	shadow.Limit.Mode = rules.ModeShadow
	hot := hotRule(t, "hot", "POST /s", byNames("q"), 1, 100)
	hot.Limit.Priority = &rules.Priority{Source: rules.Form, Name: "plan", First: []string{"gold"}}
	exempt := rules.Rule{ID: "i", Match: rules.Match{Route: parse(t, "*"), Query: []rules.QueryMatch{{Name: "form:user", Value: "ann"}}}, Ignore: true}
	for _, test := range []struct {
		name        string
		rules       rules.Rules
		readsFirst  bool // the first request's body is read
		readsSecond bool
		pass        bool // the second passes
	}{
		{"no rule", rules.Rules{Rules: []rules.Rule{elsewhere}}, false, false, true},
		{"JSON", rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "POST /s", byNames("json:user"), 1, 1)}}, false, false, true},
		{"by", rules.Rules{Rules: []rules.Rule{byUser("r")}}, true, true, true},
		{"match", rules.Rules{Rules: []rules.Rule{ofFree}}, true, true, true},
		{"a match that cannot be", rules.Rules{Rules: []rules.Rule{ofGold}}, false, false, true},
		{"denied before", rules.Rules{Rules: []rules.Rule{byUser("r"), once}}, true, false, false},
		{"denied in shadow", rules.Rules{Rules: []rules.Rule{byUser("r"), shadow}}, true, true, true},
		{"denied by the first rule", rules.Rules{Evaluate: rules.EvaluateFirst, Rules: []rules.Rule{once, byUser("r")}}, false, false, false},
		{"first", rules.Rules{Evaluate: rules.EvaluateFirst, Rules: []rules.Rule{byUser("r"), once}}, true, true, true},
		{"first, elsewhere", rules.Rules{Evaluate: rules.EvaluateFirst, Rules: []rules.Rule{ofGold, once}}, false, false, false},
		{"a priority of keys that are not hot", rules.Rules{Rules: []rules.Rule{hot}}, false, false, true},
		{"exempt", rules.Rules{Rules: []rules.Rule{once, exempt}}, true, true, true},
		{"ignored before", rules.Rules{Rules: []rules.Rule{byUser("r"), ignoreRule(t, "i", "*")}}, false, false, true},
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
			if _, replaced := req.HTTP.Body.(*bodies.Held); replaced != reads {
				t.Errorf("%s: request %d: the body was replaced: %v", test.name, i+1, replaced)
			}
			if i == 1 && d.Allowed != test.pass {
				t.Errorf("%s: %+v", test.name, d)
			}
		}
	}
}

// The backend is asked before a body is read, and once more for the rules that depend on it. If
// these deny, its first grant is returned.
func TestBackendIsAskedBeforeBodies(t *testing.T) {
	backend := newShared(t)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		exactly(limitRule(t, "user", "POST /s", byNames("form:user"), 1, 1), ""), exactly(limitRule(t, "all", "*", rules.By{}, 1, 3), ""),
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
