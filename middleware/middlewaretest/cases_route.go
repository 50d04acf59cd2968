package middlewaretest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/middleware"
)

var routeCases = []Case{
	{"route template", testTemplates},
	{"path parameters are the router's", testPathParameters},
	{"rule of a template", testTemplateRule},
	{"HEAD", testHead},
	{"query", testQuery},
	{"context values", testContextValues},
	{"unknown routes are bounded", testUnknownRoutes},
	{"request as it was", testRequestAsItWas},
}

const countAll = `{id: all, match: {route: "*"}, by: all, hot: 100000/s}`

var shopRoutes = []Route{
	{Method: "GET", Pattern: "/u/{id}"},
	{Method: "POST", Pattern: "/u/{id}"},
	{Method: "GET", Pattern: "/shops/{shop}/items/{item}"},
	{Method: "GET", Pattern: "/files/{path...}"},
	{Method: "GET", Pattern: "/search"},
	{Method: "GET", Pattern: "/{$}"},
}

// testTemplates checks that keys have the route's template, in the syntax of http.ServeMux.
func testTemplates(t *testing.T, s Start) {
	f := start(t, s, countAll, shopRoutes)
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/u/7?q=1", "GET /u/{id}?path:id=7&q=1"},
		{"POST", "/u/7", "POST /u/{id}?path:id=7"},
		{"GET", "/shops/3/items/phone", "GET /shops/{shop}/items/{item}?path:item=phone&path:shop=3"},
		{"GET", "/files/a/b.txt", "GET /files/{path...}?path:path=a%2Fb.txt"},
		{"GET", "/search?q=phone", "GET /search?q=phone"},
		{"GET", "/?q=1", "GET /{$}?q=1"},
	} {
		if a := f.send(c.method, c.target); a.status != http.StatusOK || a.body != "served" {
			t.Errorf("%s %s: %d %q", c.method, c.target, a.status, a.body)
		}
		if got := f.keys(); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s %s: counted %q, want %q", c.method, c.target, got, c.want)
		}
	}
}

// escape returns the canonical form of a value, by code that is not hotparam's.
func escape(v string) string { return strings.ReplaceAll(url.QueryEscape(v), "+", "%20") }

// If the handler is called, the key has the parameters that the handler sees, for any spelling
// of the path. So no spelling evades a rule.
func testPathParameters(t *testing.T, s Start) {
	var seen []string // the keys that would be right
	report := func(method, pattern string, names ...string) Route {
		return Route{Method: method, Pattern: pattern, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			values := func(form func(string) string) string {
				var params []string
				for _, name := range names {
					value := form(r.PathValue(name))
					if value == "" && name != "path" { // a pattern has no empty segment
						value = "\x00"
					}
					params = append(params, "path:"+name+"="+escape(value))
				}
				return method + " " + pattern + "?" + strings.Join(params, "&")
			}
			seen = append(seen,
				values(func(v string) string { return v }),
				values(func(v string) string { // for a router that returns the value as sent
					if decoded, err := url.PathUnescape(v); err == nil {
						return decoded
					}
					return v
				}))
		})}
	}
	f := start(t, s, countAll, []Route{
		report("GET", "/u/{id}", "id"),
		report("GET", "/u/{id}/of/{shop}", "id", "shop"),
		report("GET", "/files/{path...}", "path"),
	})
	reached := 0
	for _, target := range []string{
		"/u/7", "/u/%37", "/%75/7", "/u/a%20b", "/u/a+b", "/u/a%2Bb", "/u/a%2Fb", "/u/a%2fof%2fb", "/u/a%2Fof/b", "/u/%25", "/u/50%25",
		"/u/%2541", "/u/%C3%BC", "/u/A", "/u/a,b!", "/u/a:b", "/u/a;b", "/u/~", "/u/{x}", "/u/*", "/u/:id", "/u/%00", "/u/%FF",
		"/u//of/3", "//u/7", "/u//7", "/u/./7", "/x/../u/7", "/u/7/", "/U/7", "/u/a/of/b", "/u/a%2F/of/b",
		"/files/", "/files/a", "/files/a/b", "/files/a%2Fb", "/files/a%20b/c", "/files//a", "/files/a/", "/files/%2e%2e/a", "/u/" + strings.Repeat("x", 300),
	} {
		seen = nil
		a := f.get(target)
		got := f.keys()
		switch {
		case seen == nil && slices.ContainsFunc(got, func(key string) bool { return !strings.HasPrefix(key, middleware.Unrouted) }):
			// The router itself redirects or refuses. It has counted templates at most.
			for _, key := range got {
				if !strings.Contains(key, "{") {
					t.Errorf("GET %s: status %d, counted %q", target, a.status, got)
				}
			}
		case seen == nil:
		case len(got) != 1 || !slices.Contains(seen, got[0]):
			t.Errorf("GET %s: counted %q; by what the handler sees it is one of %q", target, got, seen)
		default:
			reached++
		}
	}
	if reached < 20 {
		t.Errorf("only %d of the requests reached a handler", reached)
	}
}

// A rule names the template and its parameter.
func testTemplateRule(t *testing.T, s Start) {
	f := start(t, s, `{id: users, match: {route: "GET /u/{id}"}, by: ["path:id"], limit: {rate: 1/1h, burst: 2}}`, shopRoutes)
	f.wantStatus("/u/7", 200, 200, 429)
	f.wantStatus("/u/7?x=1", 429)
	f.wantStatus("/u/8", 200)
	f.wantStatus("/search", 200, 200, 200)
	if a := f.send("POST", "/u/7"); a.status != http.StatusOK {
		t.Errorf("another method of the path: status %d", a.status)
	}
}

// A HEAD request, if the server supports it, does not bypass the template.
func testHead(t *testing.T, s Start) {
	f := start(t, s, countAll, shopRoutes)
	a := f.send("HEAD", "/u/7")
	got := f.keys()
	want := []string{"GET /u/{id}?path:id=7", "HEAD /u/{id}?path:id=7"}
	if a.status != http.StatusOK {
		want = append(want, middleware.Unrouted)
	}
	if len(got) > 1 || len(got) == 1 && !slices.Contains(want, got[0]) || a.status == http.StatusOK && len(got) == 0 {
		t.Errorf("status %d, counted %q", a.status, got)
	}
}

func testQuery(t *testing.T, s Start) {
	f := start(t, s, `{id: terms, match: {route: "GET /search"}, by: [q], hot: 100000/s}`, shopRoutes)
	for target, want := range map[string][]string{
		"/search?q=phone":            {"GET /search?q=phone"},
		"/search?page=2&q=phone":     {"GET /search?q=phone"},
		"/search?q=phone&q=boat":     {"GET /search?q=boat", "GET /search?q=phone"},
		"/search?q=phone&q=phone":    {"GET /search?q=phone"},
		"/search?q=a%26b%3Dc":        {"GET /search?q=a%26b%3Dc"},
		"/search?q=two+words":        {"GET /search?q=two%20words"},
		"/search?q=":                 {"GET /search?q="},
		"/search?page=2":             nil,
		"/search":                    nil,
		"/search?Q=phone":            nil,
		"/search?q=%C3%BC&q=%u00fc":  {"GET /search?q=%25u00fc", "GET /search?q=%C3%BC"},
		"/search?" + manyQueries(12): {"GET /search?q=0", "GET /search?q=1", "GET /search?q=10", "GET /search?q=11", "GET /search?q=2", "GET /search?q=3", "GET /search?q=4", "GET /search?q=5", "GET /search?~more"},
	} {
		f.get(target)
		if got := f.keys(); !slices.Equal(got, want) {
			t.Errorf("GET %s: counted %q, want %q", target, got, want)
		}
	}
}

func manyQueries(n int) string {
	var q []string
	for i := range n {
		q = append(q, fmt.Sprintf("q=%d", i))
	}
	return strings.Join(q, "&")
}

type userKey struct{}

// A value that a middleware in front of the guard puts into the context is a parameter.
func testContextValues(t *testing.T, s Start) {
	server := Server{
		Routes: []Route{{Method: "GET", Pattern: "/search", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, _ := r.Context().Value(userKey{}).(string)
			_, _ = io.WriteString(w, user)
		})}},
		Context: func(ctx context.Context, h http.Header) context.Context {
			return context.WithValue(ctx, userKey{}, h.Get("X-User"))
		},
	}
	f := startWith(t, s, server, `{id: users, match: {route: "GET /search"}, by: ["ctx:user"], limit: {rate: 1/1h, burst: 1}}`,
		middleware.WithParam("user", func(ctx context.Context) string {
			user, _ := ctx.Value(userKey{}).(string)
			return user
		}))
	for _, c := range []struct {
		user string
		want int
	}{{"ann", 200}, {"ann", 429}, {"bob", 200}, {"bob", 429}} {
		req := f.request(t.Context(), "GET", "/search", nil)
		req.Header.Set("X-User", c.user)
		a := f.do(req)
		if a.status != c.want || a.status == http.StatusOK && a.body != c.user {
			t.Errorf("%s: status %d, body %q, want %d", c.user, a.status, a.body, c.want)
		}
	}
}

// Requests without a route do not make a key for each path, nor for each method.
func testUnknownRoutes(t *testing.T, s Start) {
	f := start(t, s, countAll+"\n"+`{id: known, match: {route: "GET /admin/{page}"}, by: ["path:page"], limit: {rate: 1/1h, burst: 1}}`, shopRoutes)
	const requests = 60
	for i := range requests {
		for _, c := range []struct{ method, target string }{
			{"GET", fmt.Sprintf("/scan-%d", i)}, {"GET", fmt.Sprintf("/shops/%d/none/%d", i, i)}, {"DELETE", fmt.Sprintf("/u/%d", i)},
			{"GET", fmt.Sprintf("/search/%d", i)}, {fmt.Sprintf("SCAN%d", i), "/search"},
		} {
			if a := f.send(c.method, c.target); a.status < 300 || a.status == http.StatusTooManyRequests {
				t.Fatalf("%s %s: status %d", c.method, c.target, a.status)
			}
		}
	}
	if got := f.keys(); len(got) > 5 {
		t.Errorf("%d requests of no route made %d keys, such as %q", 5*requests, len(got), got[:5])
	}
	// A rule that names the path still limits it.
	f.get("/admin/users")
	if a := f.get("/admin/users"); a.status != http.StatusTooManyRequests {
		t.Errorf("a rule for a path that has no route: status %d", a.status)
	}
}

// The handler gets the same request as without a guard.
func testRequestAsItWas(t *testing.T, s Start) {
	seen := make(chan string, 1)
	routes := []Route{{Method: "GET", Pattern: "/u/{id}", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.URL.Path, " ", r.URL.RawPath, " ", r.URL.RawQuery, " ", r.Host != "", " ", r.Header.Get("X-Test"), " ", strings.HasPrefix(r.Pattern, middleware.Unrouted))
	})}}
	f := start(t, s, countAll+"\n"+`{id: units, match: {route: "*"}, count: units, hot: 100000/s}`, routes)
	for target, want := range map[string]string{
		"/u/7?q=a%20b": "GET /u/7?q=a%20b /u/7  q=a%20b true yes false",
		"/u/%37":       "GET /u/%37 /u/7 /u/%37  true yes false",
	} {
		req := f.request(t.Context(), "GET", target, nil)
		req.Header.Set("X-Test", "yes")
		if a := f.do(req); a.status != http.StatusOK {
			t.Errorf("GET %s: status %d", target, a.status)
			continue
		}
		if got := <-seen; got != want {
			t.Errorf("GET %s: the handler saw %q, want %q", target, got, want)
		}
	}
}
