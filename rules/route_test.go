package rules

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/base"
)

func mustRoute(t testing.TB, s string) Route {
	t.Helper()
	r, err := ParseRoute(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRouteMatches(t *testing.T) {
	for _, test := range []struct {
		route, method, path string
		want                bool
	}{
		{"*", "GET", "/", true},
		{"*", "", "", true},
		{"/search", "POST", "/search", true},
		{"/search", "GET", "/search/", false},
		{"GET /search", "GET", "/search", true},
		{"GET /search", "HEAD", "/search", true},
		{"HEAD /search", "GET", "/search", false},
		{"GET /search", "POST", "/search", false},
		{"GET   /search", "GET", "/search", true},
		{"/static/", "GET", "/static/", true},
		{"/static/", "GET", "/static/a/b", true},
		{"/static/", "GET", "/static", false},
		{"/", "GET", "/anything/at/all", true},
		{"/{$}", "GET", "/", true},
		{"/{$}", "GET", "/a", false},
		{"/a/{$}", "GET", "/a/", true},
		{"/a/{$}", "GET", "/a", false},
		{"/u/{id}", "GET", "/u/7", true},
		{"/u/{id}", "GET", "/u/", false},
		{"/u/{id}", "GET", "/u/7/x", false},
		{"/u/{id}", "GET", "/u/a%2Fb", true},
		{"/u/{id}/", "GET", "/u/7/", true},
		{"/u/{id}/", "GET", "/u/7", false},
		{"/f/{p...}", "GET", "/f/a/b", true},
		{"/f/{p...}", "GET", "/f/", true},
		{"/f/{p...}", "GET", "/f", false},
		{"/u/{id}", "OPTIONS", "*", false},
		{"checkout", "GET", "/checkout", false},
	} {
		if got := mustRoute(t, test.route).Matches(test.method, test.path); got != test.want {
			t.Errorf("%q matches %s %s: %v", test.route, test.method, test.path, got)
		}
	}
}

func TestParseRouteTellsWhatIsWrong(t *testing.T) {
	for route, want := range map[string]error{
		"":                  errRouteEmpty,
		"  ":                errRouteEmpty,
		"/a{b}":             errRouteWildcard,
		"/{b}a/":            errRouteWildcard,
		"/a/{b":             errRouteWildcard,
		"/{p...}/a":         errRouteRest,
		"/{$}/a":            errRouteRest,
		"/{}":               errRouteName,
		"/{...}":            errRouteName,
		"/{1a}":             errRouteName,
		"/{a-b}":            errRouteName,
		"/{a}/{a}":          errRouteName,
		"/{a}/{a...}":       errRouteName,
		"GET /search?q=1":   errRouteQuery,
		"GET example.com/a": errRouteHost,
	} {
		if r, err := ParseRoute(route); err == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("ParseRoute(%q) is %q, %v; want %v", route, r, err, want)
		}
	}
}

func TestResources(t *testing.T) {
	r := mustRoute(t, "checkout v2")
	if !r.Resource("checkout v2") || r.Resource("checkout") || r.Path() != "" || r.IsAny() || r.IsZero() {
		t.Errorf("%q is not the resource of its name", r)
	}
	if !mustRoute(t, "*").Resource("anything") || !(Route{}).IsZero() || (Route{}).Matches("GET", "/") {
		t.Error("* is every resource, and the zero route is none")
	}
	if r.Values("", nil) {
		t.Error("a resource has no path, not even an empty one")
	}
}

// These are patterns that http.ServeMux accepts, and paths that it does not clean.
var (
	routeParts = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c%20d", "{x}", "{y}", "{z}"}), 0, 3)
	routeEnds  = rapid.SampledFrom([]string{"", "/", "/{$}", "/{rest...}"})
	pathParts  = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c%20d", "e%2Ff", "{x}", "%7Bx%7D"}), 0, 5)
)

func drawPattern(t *rapid.T) string {
	var names []string
	path := ""
	for _, part := range routeParts.Draw(t, "parts") {
		if slices.Contains(names, part) {
			continue
		}
		if part[0] == '{' {
			names = append(names, part)
		}
		path += "/" + part
	}
	if path += routeEnds.Draw(t, "end"); path == "" {
		path = "/"
	}
	if method := rapid.SampledFrom([]string{"", "GET", "POST", "HEAD"}).Draw(t, "method"); method != "" {
		return method + " " + path
	}
	return path
}

// A route matches the requests that a ServeMux with that one pattern serves, and has the same
// values.
func TestRouteMatchesWhatServeMuxServes(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		pattern := drawPattern(t)
		route, err := ParseRoute(pattern)
		if err != nil {
			t.Fatal(err)
		}
		var served *http.Request
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) { served = r })
		for range 8 {
			served = nil
			path := "/" + strings.Join(pathParts.Draw(t, "path"), "/")
			if path != "/" && rapid.Bool().Draw(t, "slash") {
				path += "/"
			}
			req := httptest.NewRequest(rapid.SampledFrom([]string{"GET", "HEAD", "POST"}).Draw(t, "with"), path, nil)
			mux.ServeHTTP(httptest.NewRecorder(), req)
			escaped := string(base.AppendPath(nil, req.URL.EscapedPath()))
			if got := route.Matches(req.Method, escaped); got != (served != nil) {
				t.Fatalf("%q matches %s %s: %v, ServeMux says %v", pattern, req.Method, escaped, got, served != nil)
			}
			if served == nil {
				continue
			}
			matched++
			var names []string
			if !route.Values(escaped, func(name, value string) {
				names = append(names, name)
				if plain, err := url.PathUnescape(value); err != nil || plain != served.PathValue(name) {
					t.Fatalf("%q of %s: %s is %q, ServeMux says %q (%v)", pattern, escaped, name, value, served.PathValue(name), err)
				}
			}) {
				t.Fatalf("%q has no values in %s", pattern, escaped)
			}
			if !slices.Equal(names, route.Names()) {
				t.Fatalf("%q has values of %q, want %q", pattern, names, route.Names())
			}
		}
	})
	if !testing.Short() && matched == 0 {
		t.Error("nothing ever matched")
	}
}

// MayMatch never excludes a pattern whose requests the route can match.
func TestMayMatchRulesOutNothingThatMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := ParseRoute(drawPattern(t))
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseRoute(drawPattern(t))
		if err != nil {
			t.Fatal(err)
		}
		path := "/" + strings.Join(pathParts.Draw(t, "path"), "/")
		method := rapid.SampledFrom([]string{"GET", "HEAD", "POST"}).Draw(t, "method")
		if a.Matches(method, path) && b.Matches(method, path) && !a.MayMatch(method, b) {
			t.Fatalf("%q cannot match what %q matches, but does: %s %s", a, b, method, path)
		}
	})
}

func TestRoutesReadBackAsTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, err := ParseRoute(drawPattern(t))
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRoute(r.String())
		if err != nil || again.String() != r.String() || again.Path() != r.Path() {
			t.Fatalf("%q reads back as %q (%v)", r, again, err)
		}
		if !r.SamePattern(r.method, r.Path()) {
			t.Fatalf("%q is not its own pattern", r)
		}
	})
}

func TestMatchesDoesNotAllocate(t *testing.T) {
	routes := []Route{mustRoute(t, "GET /u/{id}/f/{p...}"), mustRoute(t, "/search"), mustRoute(t, "*")}
	n := 0
	value := func(_, v string) { n += len(v) }
	if allocs := testing.AllocsPerRun(100, func() {
		for _, r := range routes {
			r.Matches("GET", "/u/7/f/a/b")
			r.Values("/u/7/f/a/b", value)
		}
	}); allocs != 0 || n == 0 {
		t.Errorf("%v allocations, %d bytes of values", allocs, n)
	}
}

func FuzzParseRoute(f *testing.F) {
	for _, s := range []string{"*", "GET /u/{id}", "/f/{p...}", "/{$}", "POST /a/{b}/c/", "checkout", "/a?b", "GET h/", "/{é}//{"} {
		f.Add(s, "/u/7")
	}
	f.Fuzz(func(t *testing.T, s, path string) {
		r, err := ParseRoute(s)
		if err != nil {
			return
		}
		again, err := ParseRoute(r.String())
		if err != nil || again.String() != r.String() {
			t.Fatalf("%q reads back as %q (%v)", r, again, err)
		}
		matches := r.Matches("GET", path)
		values := 0
		has := r.Values(path, func(string, string) { values++ })
		if matches && (!has || values != len(r.Names())) {
			t.Fatalf("%q matches %q, but has %d values of %d", r, path, values, len(r.Names()))
		}
	})
}

// A route covers the paths that it matches for some method.
func TestRouteCovers(t *testing.T) {
	for _, test := range []struct {
		route, path string
		want        bool
	}{
		{"*", "/", true},
		{"*", "", true},
		{"shop.Search/Find", "/shop.Search/Find", true},
		{"shop.Search/Find", "/shop.Search/List", false},
		{"/u/%37", "/u/%37", true}, // as the path of a request may be
	} {
		if got := mustRoute(t, test.route); got.Covers(test.path) != test.want {
			t.Errorf("%q covers %s: %v", test.route, test.path, !test.want)
		}
	}
	methods := []string{"GET", "HEAD", "POST", "LOCK"}
	part := rapid.SampledFrom([]string{"a", "b", "7", "%37", "%2F", "x%20y"})
	rapid.Check(t, func(t *rapid.T) {
		var route strings.Builder
		if m := rapid.SampledFrom(append(methods, "")).Draw(t, "method"); m != "" {
			route.WriteString(m + " ")
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "segments") {
			if rapid.Bool().Draw(t, "wildcard") {
				route.WriteString("/{n" + string(rune('a'+i)) + "}")
			} else {
				route.WriteString("/" + part.Draw(t, "literal"))
			}
		}
		route.WriteString(rapid.SampledFrom([]string{"", "", "/", "/{rest...}", "/{$}"}).Draw(t, "end"))
		r, err := ParseRoute(route.String())
		if err != nil {
			t.Fatal(err)
		}
		path := "/" + strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "path"), "/") + rapid.SampledFrom([]string{"", "/"}).Draw(t, "slash")
		want := slices.ContainsFunc(methods, func(method string) bool { return r.Matches(method, string(base.AppendPath(nil, path))) })
		if r.Covers(path) != want {
			t.Fatalf("%q covers %s: %v", r, path, !want)
		}
	})
}
