package adapter

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

func TestParseColons(t *testing.T) {
	for template, want := range map[string][]Part{
		"/":                  {{Text: "/"}},
		"/u/:id":             {{Text: "/u/"}, {Name: "id"}},
		"/u/:id/of/:shop":    {{Text: "/u/"}, {Name: "id"}, {Text: "/of/"}, {Name: "shop"}},
		"/files/*path":       {{Text: "/files/"}, {Name: "path", Rest: true}},
		"/files/*":           {{Text: "/files/"}, {Rest: true}},
		"/v:major/x":         {{Text: "/v"}, {Name: "major"}, {Text: "/x"}},
		`/r/:name\:cancel/x`: {{Text: "/r/"}, {Name: "name"}, {Text: ":"}, {Text: "cancel/x"}},
		`/a\:b`:              {{Text: "/a"}, {Text: ":"}, {Text: "b"}},
		`/a\b`:               {{Text: "/a"}, {Text: `\`}, {Text: "b"}},
		"/käse/:id":          {{Text: "/käse/"}, {Name: "id"}},
		"":                   nil,
	} {
		if got := ParseColons(template); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", template, got, want)
		}
	}
}

func TestPattern(t *testing.T) {
	for template, want := range map[string]string{
		"/":                 "/{$}",
		"/search":           "/search",
		"/search/":          "/search/{$}",
		"/u/:id":            "/u/{id}",
		"/u/:id/":           "/u/{id}/{$}",
		"/u/:user-id":       "/u/{user_id}",
		"/u/:2nd":           "/u/{_2nd}",
		"/u/:id/of/:id/:id": "/u/{id}/of/{id_2}/{id_3}",
		"/files/*":          "/files/{path...}",
		"/files/*filepath":  "/files/{filepath...}",
		"/:path/*":          "/{path}/{path_2...}",
		"/files*":           "/{path...}",
		`/v:major\:x`:       "/{major}",
		"/käse/a b":         "/k%C3%A4se/a%20b",
		"/50%/{x}":          "/50%25/%7Bx%7D",
	} {
		got := newTemplate(ParseColons(template)).pattern
		if got != want {
			t.Errorf("%s: %s, want %s", template, got, want)
		}
		if _, err := rules.ParseRoute("GET " + got); err != nil {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// collect is a sink that records the texts of keys.
type collect struct {
	collector.CountsOnly
	keys []string
}

func (s *collect) Send(_ context.Context, _ collector.Flush, counts []collector.Count) collector.Sent {
	for _, c := range counts {
		s.keys = append(s.keys, string(c.Text))
	}
	return collector.Sent{Lines: int64(len(counts))}
}
func (s *collect) Fit(text []byte) []byte { return text }
func (s *collect) Close() error           { return nil }

// fixture is an adapter whose state of a request is a string.
type fixture struct {
	*Adapter[string]
	sink   *collect
	counts *collector.Collector
	next   func(c string, w http.ResponseWriter, r *http.Request)
	lead   func(c string) http.Handler
}

func newFixture(tb testing.TB, more ...rules.Rule) *fixture {
	tb.Helper()
	any, err := rules.ParseRoute("*")
	if err != nil {
		tb.Fatal(err)
	}
	rules := &rules.Rules{Namespace: "test", Rules: []rules.Rule{{
		ID: "all", Match: rules.Match{Route: any}, By: rules.By{Kind: rules.ByAll},
		Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 1e6, Per: 1e9})},
	}}}
	for _, r := range more {
		r.Match.Route = any
		rules.Rules = append(rules.Rules, r)
	}
	f := &fixture{sink: new(collect)}
	if f.counts, err = collector.New(collector.Config{Sink: f.sink, MaxKeys: 1 << 12}); err != nil {
		tb.Fatal(err)
	}
	guard, err := middleware.New(rules, f.counts)
	if err != nil {
		tb.Fatal(err)
	}
	f.Adapter = New(guard, ParseColons, func(c string, w http.ResponseWriter, r *http.Request) {
		if f.next != nil {
			f.next(c, w, r)
		}
	}, func(c string) http.Handler {
		if f.lead != nil {
			return f.lead(c)
		}
		return nil
	})
	return f
}

func (f *fixture) keys() []string {
	f.sink.keys = nil
	f.counts.Flush(context.Background(), time.Unix(0, 0))
	slices.Sort(f.sink.keys)
	return f.sink.keys
}

// The key has the router's values, whatever path was sent.
func TestValues(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		sent, template string
		values         []string
		want           string
	}{
		{"/u/7", "/u/:id", []string{"7"}, "GET /u/{id}?path:id=7"},
		{"/u/%37", "/u/:id", []string{"7"}, "GET /u/{id}?path:id=7"},
		{"/u/%37", "/u/:id", []string{"%37"}, "GET /u/{id}?path:id=7"},
		{"/u/50%25", "/u/:id", []string{"50%"}, "GET /u/{id}?path:id=50%25"},
		{"/u/50%25", "/u/:id", []string{"50%25"}, "GET /u/{id}?path:id=50%25"},
		{"/u/%2541", "/u/:id", []string{"%41"}, "GET /u/{id}?path:id=%2541"},
		{"/u/%2541", "/u/:id", []string{"%2541"}, "GET /u/{id}?path:id=%2541"},
		{"/u/a%2Fb", "/u/:id", []string{"a/b"}, "GET /u/{id}?path:id=a%2Fb"},
		{"/u/a%2Fb", "/u/:id/:of", []string{"a", "b"}, "GET /u/{id}/{of}?path:id=a&path:of=b"},
		{"//u//7", "/u/:id", []string{"7"}, "GET /u/{id}?path:id=7"},
		{"//u/a%2fb", "/u/:id", []string{"a%2fb"}, "GET /u/{id}?path:id=a%2Fb"},
		{"//u/a%20b", "/u/:id", []string{"a b"}, "GET /u/{id}?path:id=a%20b"},
		{"/u/7.json", "/u/:id", []string{"7"}, "GET /u/{id}?path:id=7"},
		{"/u//x", "/u/:id/x", []string{""}, "GET /u/{id}/x?path:id=%00"},
		{"/v2/x", "/v:major/x", []string{"2"}, "GET /{major}/x?path:major=v2"},
		{"/files/a/b", "/files/*", []string{"a/b"}, "GET /files/{path...}?path:path=a%2Fb"},
		{"/files/", "/files/*", []string{""}, "GET /files/{path...}?path:path="},
		{"/search", "/search", nil, "GET /search"},
		{"/none", "", nil, middleware.Unrouted},
		{"/u/7", "/u/:id", nil, middleware.Unrouted}, // a router that contradicts itself
	} {
		r := httptest.NewRequest(http.MethodGet, c.sent, nil)
		r.Pattern = "before"
		path := r.URL.String()
		called := false
		f.next = func(state string, _ http.ResponseWriter, got *http.Request) {
			called = true
			if state != "state" || got.Pattern != "before" || got.URL.String() != path {
				t.Errorf("%s: next got %q, %s %s", c.sent, state, got.Pattern, got.URL)
			}
		}
		passed := f.Serve("state", httptest.NewRecorder(), r, Route{Template: c.template, Values: c.values})
		if got := f.keys(); !passed || !called || !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: counted %q, want %q", c.sent, got, c.want)
		}
	}
}

func TestMethod(t *testing.T) {
	f := newFixture(t)
	f.Serve("", httptest.NewRecorder(), httptest.NewRequest(http.MethodHead, "/u/7", nil), Route{Template: "/u/:id", Values: []string{"7"}, Method: http.MethodGet})
	if got := f.keys(); !slices.Equal(got, []string{"GET /u/{id}?path:id=7"}) {
		t.Errorf("counted %q", got)
	}
}

// A request is restored after a refusal and after a panic of its handler.
func TestRestores(t *testing.T) {
	f := newFixture(t, rules.Rule{ID: "once", Limit: &rules.Limit{
		Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: 3600e9}, Burst: 1}, Mode: rules.ModeLimit,
	}})
	r := httptest.NewRequest(http.MethodGet, "//u/7", nil)
	r.Pattern = "before"
	was := r.URL
	f.next = func(string, http.ResponseWriter, *http.Request) { panic("the handler's own") }
	func() {
		defer func() {
			if recover() != "the handler's own" {
				t.Error("the panic was lost")
			}
		}()
		f.Serve("", httptest.NewRecorder(), r, Route{Template: "/u/:id", Values: []string{"7"}})
	}()
	if r.Pattern != "before" || r.URL != was {
		t.Errorf("after a panic: %s %s", r.Pattern, r.URL)
	}
	w := httptest.NewRecorder()
	if f.Serve("", w, r, Route{Template: "/u/:id", Values: []string{"7"}}) || w.Code != http.StatusTooManyRequests {
		t.Errorf("passed with status %d", w.Code)
	}
	if r.Pattern != "before" || r.URL != was {
		t.Errorf("after a refusal: %s %s", r.Pattern, r.URL)
	}
}

// When the guard builds a request of its own, as for costs in units, both requests are restored.
func TestGuardsOwnRequest(t *testing.T) {
	f := newFixture(t, rules.Rule{ID: "units", By: rules.By{Kind: rules.ByAll}, Count: rules.Units, Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 1e6, Per: 1e9})}})
	r := httptest.NewRequest(http.MethodGet, "//u/7", nil)
	r.Pattern = "before"
	was := r.URL
	f.next = func(_ string, _ http.ResponseWriter, own *http.Request) {
		if own == r {
			t.Error("the guard has made no request")
		}
		for _, got := range []*http.Request{own, r} {
			if got.Pattern != "before" || got.URL != was {
				t.Errorf("%s %s", got.Pattern, got.URL)
			}
		}
	}
	if !f.Serve("", httptest.NewRecorder(), r, Route{Template: "/u/:id", Values: []string{"7"}}) {
		t.Error("it did not pass")
	}
}

// A run has the router's pattern and URL, unless these may depend on what is not in the key.
func TestLead(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		name, sent, url string
		runs            bool
	}{
		{"as sent", "/u/7", "/u/7", true},
		{"a spelling that the router changes", "//u//7?q=1", "//u//7?q=1", true},
		{"rewritten in front", "/old?q=1", "/u/7", true}, // the guard sees it
		{"rewritten to another spelling", "/old", "//u//7", false},
	} {
		r := httptest.NewRequest(http.MethodGet, c.sent, nil)
		u, err := url.Parse("http://shop" + c.url)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User("ann")
		r.URL, r.Pattern = u, "before"
		var ran *http.Request
		f.lead = func(state string) http.Handler {
			if state != "state" {
				t.Errorf("lead got %q", state)
			}
			return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ran = r })
		}
		x := f.calls.Get().(*guardedCall[string])
		x.c, x.in, x.pattern, x.url = "state", r, r.Pattern, r.URL
		x.setRoute(f.templates.templateFor("/u/:id"), &Route{Template: "/u/:id", Values: []string{"7"}})
		h := x.Lead()
		if (h != nil) != c.runs {
			t.Errorf("%s: runs %t", c.name, h != nil)
		}
		if h == nil {
			continue
		}
		x.restore(r)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		if want := "http://shop" + c.url; ran.Pattern != "before" || ran.URL.String() != want {
			t.Errorf("%s: %s %s, want %s", c.name, ran.Pattern, ran.URL, want)
		}
		f.lead = nil
		if x.Lead() != nil {
			t.Errorf("%s: a router without runs", c.name)
		}
	}
}

func TestWraps(t *testing.T) {
	own := httptest.NewRecorder()
	around := wrapped{wrapped{own}}
	if !Wraps(own, own) || !Wraps(around, own) || Wraps(httptest.NewRecorder(), own) || Wraps(around, httptest.NewRecorder()) {
		t.Error("a writer is not told from others")
	}
}

type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// The number of cached templates is bounded, although the program makes them, since it may set any
// template.
func TestTemplatesAreBounded(t *testing.T) {
	f := newFixture(t)
	for i := range maxTemplates + 10 {
		f.templates.templateFor(fmt.Sprintf("/t%d/:id", i))
	}
	if n := len(*f.templates.known.Load()); n != maxTemplates {
		t.Errorf("%d templates are kept", n)
	}
	if got := f.templates.templateFor("/other/:id").pattern; got != "/other/{id}" {
		t.Errorf("beyond the bound: %s", got)
	}
}

// Whatever a router returns, the path that the guard gets has the template's form, so that no
// value is lost.
func FuzzFill(f *testing.F) {
	f.Add("/u/7", "7", "x")
	f.Add("/u/%2F", "/", "%")
	f.Add("//u/%zz", "", "%zz")
	pattern, err := rules.ParseRoute("/u/{id}/of/{shop}")
	if err != nil {
		f.Fatal(err)
	}
	tpl := newTemplate(ParseColons("/u/:id/of/:shop"))
	f.Fuzz(func(t *testing.T, sent, id, shop string) {
		_, path, same := tpl.appendPath(nil, nil, sent, []string{id, shop})
		if !pattern.Matches(http.MethodGet, string(path)) {
			t.Fatalf("%q has not the form of %s", path, tpl.pattern)
		}
		plain, err := url.PathUnescape(string(path))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(id+shop+sent, "%") && id != "" && shop != "" && plain != "/u/"+id+"/of/"+shop {
			t.Errorf("%q is not the path of %q and %q", plain, id, shop)
		}
		if same && !strings.EqualFold(plain, mustUnescape(sent)) {
			t.Errorf("%q is taken for %q", path, sent)
		}
	})
}

// mustUnescape decodes valid escapes and keeps everything else.
func mustUnescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if i+3 <= len(s) {
			if c, err := url.PathUnescape(s[i : i+3]); err == nil && s[i] == '%' {
				b.WriteString(c)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
