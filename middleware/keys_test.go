package middleware

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 600)
	sum := func(s string) string {
		h := sha256.Sum256([]byte(s))
		return hex.EncodeToString(h[:16])
	}
	cases := []struct {
		name string
		rule string // route
		by   rules.By
		bare bool // ParamsOnly
		req  Request
		want []string // texts
	}{
		{"all", "GET /s", byAll, false, get("GET /s", "/s", "q=1&b=2"), []string{"GET /s?b=2&q=1"}},
		{"all, repeated", "GET /s", byAll, false, get("GET /s", "/s", "q=2&q=1&q=2"), []string{"GET /s?q=1&q=2&q=2"}},
		{"all, decoded", "GET /s", byAll, false, get("GET /s", "/s", "q=a+b%2Bc%zz&%71=%41"), []string{"GET /s?q=A&q=a%20b%2Bc%25zz"}},
		{"all, no value", "GET /s", byAll, false, get("GET /s", "/s", "q&&b="), []string{"GET /s?b=&q="}},
		{"all, no parameters", "GET /s", byAll, false, get("GET /s", "/s", ""), []string{"GET /s"}},
		{"all, only secrets", "GET /s", byAll, false, get("GET /s", "/s", "token=1&Access-Token=2"), []string{"GET /s"}},
		{"all, a secret", "GET /s", byAll, false, get("GET /s", "/s", "user%5Bpassword%5D=1&q=1&PASSWORD=x"), []string{"GET /s?q=1"}},
		{"all, path", "GET /u/{id}", byAll, false, get("GET /u/{id}", "/u/a%2Fb", "q=1"), []string{"GET /u/{id}?path:id=a%2Fb&q=1"}},
		{"all, rest", "/f/{p...}", byAll, false, get("/f/{p...}", "/f/a/b%20c", ""), []string{"GET /f/{p...}?path:p=a%2Fb%20c"}},
		{"each", "GET /s", byEach, false, get("GET /s", "/s", "q=1&b=2&token=3"), []string{"GET /s?b=2", "GET /s?q=1"}},
		{"each, no parameters", "GET /s", byEach, false, get("GET /s", "/s", ""), nil},
		{"each, path", "GET /u/{id}", byEach, false, get("GET /u/{id}", "/u/7", "id=7"), []string{"GET /u/{id}?id=7", "GET /u/{id}?path:id=7"}},
		{"names", "GET /s", byNames("q", "b"), false, get("GET /s", "/s", "q=1&b=2&c=3"), []string{"GET /s?b=2&q=1"}},
		{"names, one missing", "GET /s", byNames("q", "b"), false, get("GET /s", "/s", "b=2&c=3"), []string{"GET /s?b=2"}},
		{"names, all missing", "GET /s", byNames("q", "b"), false, get("GET /s", "/s", "c=3"), nil},
		{"names, path", "GET /u/{id}", byNames("path:id"), false, get("GET /u/{id}", "/u/7", "id=8"), []string{"GET /u/{id}?path:id=7"}},
		{"names, path and query", "GET /u/{id}", byNames("path:id", "q"), false, get("GET /u/{id}", "/u/7", "q=1"), []string{"GET /u/{id}?path:id=7&q=1"}},
		{"names are exact", "GET /s", byNames("q"), false, get("GET /s", "/s", "Q=1&qq=2"), nil},
		{"parameters only, all", "GET /s", byAll, true, get("GET /s", "/s", "q=1&b=2"), []string{"b=2&q=1"}},
		{"parameters only, each", "GET /s", byEach, true, get("GET /s", "/s", "q=1&b=2"), []string{"b=2", "q=1"}},
		{"parameters only, none", "GET /s", byAll, true, get("GET /s", "/s", ""), nil},
		{"parameters only, only secrets", "GET /s", byAll, true, get("GET /s", "/s", "token=1"), nil},

		{"another route", "GET /s", byAll, false, get("GET /t", "/t", "q=1"), nil},
		{"HEAD is served by GET", "GET /s", byAll, false, Request{Method: "HEAD", Path: "/s", Query: "q=1", Pattern: "GET /s"}, []string{"GET /s?q=1"}},
		{"HEAD, pattern without method", "GET /s", byAll, false, Request{Method: "HEAD", Path: "/s", Query: "q=1", Pattern: "/s"}, []string{"HEAD /s?q=1"}},
		{"a rule for HEAD alone", "HEAD /s", byAll, false, Request{Method: "HEAD", Path: "/s", Query: "q=1", Pattern: "GET /s"}, []string{"GET /s?q=1"}},
		{"a rule for HEAD alone, GET", "HEAD /s", byAll, false, get("GET /s", "/s", "q=1"), nil},
		{"POST is not GET", "GET /s", byAll, false, Request{Method: "POST", Path: "/s", Query: "q=1", Pattern: "/s"}, nil},
		{"pattern without method", "/s", byAll, false, get("/s", "/s", "q=1"), []string{"GET /s?q=1"}},
		{"pattern with spaces", "GET /s", byAll, false, get("GET \t /s", "/s", "q=1"), []string{"GET /s?q=1"}},
		{"host pattern", "GET /s", byAll, false, get("GET example.com/s", "/s", "q=1"), []string{"GET example.com/s?q=1"}},
		{"host pattern, no method", "/u/{id}", byAll, false, get("example.com/u/{id}", "/u/7", ""), []string{"GET example.com/u/{id}?path:id=7"}},
		{"any route, known", "*", byAll, false, get("GET /u/{id}", "/u/7", "q=1"), []string{"GET /u/{id}?path:id=7&q=1"}},
		{"any route, unknown", "*", byAll, false, get("", "/u/7", "q=1"), []string{"GET /u/7?q=1"}},
		{"wildcards, unknown", "GET /u/{id}", byAll, false, get("", "/u/7", "q=1"), []string{"GET /u/{id}?path:id=7&q=1"}},
		{"wildcards, unknown, HEAD", "/u/{id}", byNames("path:id"), false, Request{Method: "HEAD", Path: "/u/7"}, []string{"HEAD /u/{id}?path:id=7"}},
		{"subtree, unknown", "/static/", byAll, false, get("", "/static/a/b", "v=1"), []string{"GET /static/?v=1"}},
		{"other names than the router's", "GET /u/{user}", byNames("path:user"), false, get("/u/{id}", "/u/7", ""), []string{"GET /u/{id}?path:user=7"}},
		{"closer than the router", "GET /u/{id}", byNames("path:id"), false, get("/", "/u/7", ""), []string{"GET /?path:id=7"}},
		{"closer than the router, elsewhere", "GET /u/{id}", byNames("path:id"), false, get("/", "/v/7", ""), nil},

		{"escaped path, unknown", "*", byAll, false, get("", "/%7euser/%e9/a%2fb;c|", ""), []string{"GET /~user/%E9/a%2Fb;c%7C"}},
		{"escaped without need, unknown", "GET /s", byAll, false, get("", "/%73", "q=1"), []string{"GET /s?q=1"}},
		{"escaped without need, known", "GET /users/{id}", byNames("path:id"), false, get("GET /users/{id}", "/%75sers/%37", ""), []string{"GET /users/{id}?path:id=7"}},
		{"escaped without need, subtree of the router", "GET /users/{id}", byNames("path:id"), false, get("/", "/user%73/7", ""), []string{"GET /?path:id=7"}},

		{"at the cap", "GET /s", byAll, true, get("GET /s", "/s", "q="+long[:510]), []string{"q=" + long[:510]}},
		{"over the cap", "GET /s", byAll, true, get("GET /s", "/s", "q="+long), []string{"q=" + long[:512-33-2] + "~" + sum("q="+long)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rule := hotRule(t, "r", c.rule, c.by, 0, 0)
			rule.ParamsOnly = c.bare
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			for range 2 { // a route that is new, and one that is known
				d := f.Check(c.req)
				if d != (rules.Decision{Allowed: true}) {
					t.Errorf("a rule that only watches decided %+v", d)
				}
				var want []string
				for _, text := range c.want {
					want = append(want, "r "+text)
				}
				if got := f.keys(); !slices.Equal(got, want) {
					t.Errorf("counted\n%q, want\n%q", got, want)
				}
			}
		})
	}
}

// A key over the cap differs from every other one, however long their common prefix, and is found
// again as hot.
func TestLongKeysDiffer(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}})
	long := strings.Repeat("%C3%A9", 1000)
	f.Check(get("", "/s", "q="+long+"1"))
	f.Check(get("", "/s", "q="+long+"2"))
	keys := f.keys()
	if len(keys) != 2 {
		t.Fatalf("counted %q", keys)
	}
	for _, k := range keys {
		if text := strings.TrimPrefix(k, "r "); len(text) > rules.MaxText {
			t.Errorf("%d bytes", len(text))
		}
	}
	first := rules.Text("GET /s", rules.Param{Name: "q", Value: strings.Repeat("é", 1000) + "1"})
	f.heat(t, keys[0], keys[1])
	if !f.IsHot(first) {
		t.Error("IsHot does not know the whole text")
	}
	f.Check(get("", "/s", "q="+long+"1"))
	if d := f.Check(get("", "/s", "q="+long+"1")); d.Allowed {
		t.Error("the key is not limited")
	}
	if d := f.Check(get("", "/s", "q="+long+"2")); !d.Allowed {
		t.Error("another key pays for it")
	}
}

// A key that is too long for a sink is counted and looked up in the sink's form, whether or not
// the sink shortens it in place.
func TestKeysFitTheSink(t *testing.T) {
	for name, fit := range map[string]func([]byte) []byte{
		"in place":  func(b []byte) []byte { return append(b[:90], '~') },
		"elsewhere": func(b []byte) []byte { return append(bytes.ToUpper(b[:90]), '~') },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 1, 1)}})
			f.sink.fit = func(b []byte) []byte {
				if len(b) <= 91 {
					return b
				}
				return fit(b)
			}
			long := strings.Repeat("x", 300)
			text := "GET /s?q=" + long
			want := "r " + string(f.sink.fit([]byte(text)))
			req := get("", "/s", "q="+long)
			f.Check(req)
			keys := f.keys()
			if !slices.Equal(keys, []string{want}) {
				t.Fatalf("counted %q, want %q", keys, want)
			}
			f.heat(t, want)
			f.Check(req)
			if d := f.Check(req); d.Allowed {
				t.Error("not limited")
			}
			if !f.IsHot(text) {
				t.Error("IsHot does not know it")
			}
		})
	}
}

// A request counts each key once, so a single request cannot make a value hot.
func TestRepeatedParameterCountsOnce(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byEach, 1, 5)}})
	f.heat(t, "r GET /s?q=1")
	d := f.Check(get("", "/s", strings.Repeat("q=1&", 100)+"a=2"))
	if !d.Allowed || d.Remaining != 4 {
		t.Errorf("%+v, want one token taken", d)
	}
	counts := f.keyCounts()
	if counts["r GET /s?q=1"] != 1 || counts["r GET /s?a=2"] != 1 || len(counts) != 2 {
		t.Errorf("counted %v", counts)
	}
}

// The order of the parameters and their escaping make no difference. Anything else does.
func TestKeysAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ name, value string }
		pairs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
			return pair{rapid.StringN(0, 6, -1).Draw(t, "name") + "k", rapid.StringN(0, 8, -1).Draw(t, "value")}
		}), 0, 8).Draw(t, "pairs")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		write := func() string {
			var b strings.Builder
			for i, at := range r.Perm(len(pairs)) {
				if i > 0 {
					b.WriteByte('&')
				}
				b.WriteString(sloppily(r, pairs[at].name) + "=" + sloppily(r, pairs[at].value))
			}
			return b.String()
		}
		by := rapid.SampledFrom([]rules.By{byAll, byEach}).Draw(t, "by")
		f := newFixture(t, rules.Rules{Secrets: rules.NewSecrets(nil, nil), Rules: []rules.Rule{
			{ID: "r", Match: rules.Match{Route: anyRoute}, By: by, Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 1, Per: 1e9})}},
		}})
		f.Check(get("", "/s", write()))
		first := f.keyCounts()
		f.Check(get("", "/s", write()))
		if second := f.keyCounts(); !mapsEqual(first, second) {
			t.Fatalf("the same parameters counted\n%v, then\n%v", first, second)
		}
		if by.Kind == rules.ByAll {
			// url.Values of the decoded pairs is an independent canonical form.
			for text := range first {
				_, query, _ := strings.Cut(text, "?")
				if len(text)-2 > rules.MaxText || strings.Contains(text, "~") {
					break // was cut
				}
				got, err := url.ParseQuery(query)
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				want := url.Values{}
				for _, p := range pairs {
					if s := (&rules.Secrets{}); !s.Hides(p.name) {
						want[p.name] = append(want[p.name], p.value)
					}
				}
				for name := range want {
					slices.Sort(want[name])
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%q stands for %q, want %q", text, got, want)
				}
			}
		}
	})
}

var anyRoute = func() rules.Route {
	r, err := rules.ParseRoute("*")
	if err != nil {
		panic(err)
	}
	return r
}()

// sloppily escapes the bytes that need it and, at random, others.
func sloppily(r *rand.Rand, s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		safe := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		switch {
		case safe && r.IntN(3) > 0:
			b.WriteByte(c)
		case c == ' ' && r.IntN(2) > 0:
			b.WriteByte('+')
		case r.IntN(2) > 0:
			fmt.Fprintf(&b, "%%%02x", c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func mapsEqual(a, b map[string]int64) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// A mux and the guard around it agree on the route and on every path value, however the path is
// escaped.
func TestPathValuesAreThoseOfTheMux(t *testing.T) {
	patterns := []string{"GET /u/{id}", "POST /u/{id}", "/f/{rest...}", "/a/{x}/b/{y}", "/d/{$}", "GET /lit/caf", "/"}
	ruleset := rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byAll, 0, 0)}}
	f := newFixture(t, ruleset)
	mux := http.NewServeMux()
	var want []rules.Param
	var pattern string
	for _, p := range patterns {
		names := parse(t, p).Names()
		mux.HandleFunc(p, func(_ http.ResponseWriter, r *http.Request) {
			pattern = r.Pattern
			for _, name := range names {
				want = append(want, rules.Param{Source: rules.Path, Name: name, Value: r.PathValue(name)})
			}
		})
	}
	h := f.Handler(mux)
	for _, target := range []string{
		"/u/7", "/u/a%2Fb", "/%75/7", "/u/%37", "/u/caf%C3%A9", "/u/caf%c3%a9", "/u/a+b", "/u/a%20b", "/u/%25", "/u/a;b,c=d",
		"/f/", "/f/a", "/f/a/b%2Fc/d", "/f/a%20b/", "/a/1/b/2", "/a/%2F/%62/%2f", "/d/", "/%64/", "/lit/caf", "/lit/%63af", "/none", "/n/%e9", "/",
	} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			want, pattern = nil, ""
			req := httptest.NewRequest(method, target, nil)
			h.ServeHTTP(httptest.NewRecorder(), req)
			if pattern == "" {
				t.Fatalf("%s %s was not served", method, target)
			}
			own, path, found := strings.Cut(pattern, " ")
			if !found {
				own, path = method, pattern
			}
			text := "r " + rules.Text(own+" "+path, want...)
			if got := f.keys(); !slices.Equal(got, []string{text}) {
				t.Errorf("%s %s counted %q, the mux says %q", method, target, got, text)
			}
		}
	}
}

// A rule that makes several keys of a request counts a total for each route. Each request counts
// once, whatever its parameters are.
func TestTotals(t *testing.T) {
	for _, c := range []struct {
		name string
		by   rules.By
		bare bool
		want map[string]int64
	}{
		{"each", byEach, false, map[string]int64{"r GET /s?*": 4, "r GET /u/{id}?*": 1}},
		{"each, parameters only", byEach, true, map[string]int64{"r *": 5}},
		{"combinations", rules.By{Kind: rules.ByCombinations}, false, map[string]int64{"r GET /s?*": 4, "r GET /u/{id}?*": 1}},
		{"all", byAll, false, map[string]int64{}},
		{"names", byNames("q"), false, map[string]int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := hotRule(t, "r", "*", c.by, 0, 0)
			rule.ParamsOnly = c.bare
			f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
			for _, query := range []string{"", "q=1&q=2&q=1", "a=1&b=2&c=3&d=4&e=5", "q=*"} {
				f.Check(get("GET /s", "/s", query))
			}
			f.Check(get("GET /u/{id}", "/u/7", ""))
			if got := f.totalCounts(); !maps.Equal(got, c.want) {
				t.Errorf("totals %v, want %v", got, c.want)
			}
		})
	}
}

// A route that is too long for a total has none, since a cut one would look like a key.
func TestNoTotalOfALongRoute(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "*", byEach, 0, 0)}})
	for n := 490; n < 520; n++ {
		f.Check(get("", "/"+strings.Repeat("x", n), ""))
		if keys := f.keyCounts(); len(keys) > 0 {
			t.Fatalf("a path of %d bytes makes the key %v", n+1, keys)
		}
	}
}
