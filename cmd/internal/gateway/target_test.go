package gateway

import (
	"net/url"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for _, c := range []struct {
		method, target string
		clean          bool
		want           target
	}{
		{"GET", "/search?q=a%20b&q=c", true, target{path: "/search", query: "q=a%20b&q=c"}},
		{"GET", "//search?q=a?b", true, target{path: "/search", query: "q=a?b"}},
		{"GET", "//search?q=a", false, target{path: "//search", query: "q=a"}},
		{"GET", "/search?q=a#1", true, target{path: "/search", query: "q=a"}},
		{"GET", "/search#?q=a", true, target{path: "/search"}},
		{"GET", "/search?q=a#1", false, target{path: "/search", query: "q=a#1"}},
		{"GET", "http://shop.example:80/search?q=a", true, target{path: "/search", query: "q=a", host: "shop.example:80"}},
		{"GET", "http://u:p@shop.example?q=a", true, target{path: "/", query: "q=a", host: "shop.example"}},
		{"GET", "http://shop.example?q=http://a/b", false, target{path: "", query: "q=http://a/b", host: "shop.example"}},
		{"GET", "/go?to=http://a/b", true, target{path: "/go", query: "to=http://a/b"}},
		{"GET", "/caf\xc3\xa9", true, target{path: "/caf%C3%A9"}},
		{"GET", "/a b\"", true, target{path: "/a%20b%22"}},
		{"GET", "/50%/%zz", true, target{path: "/50%25/%25zz"}},
		{"OPTIONS", "*", true, target{path: "*"}},
		{"CONNECT", "shop.example:443", true, target{host: "shop.example:443"}},
		{"GET", "", true, target{path: "/"}},
	} {
		if got := parseTarget(c.method, c.target, c.clean); got != c.want {
			t.Errorf("%s %q: %+v, want %+v", c.method, c.target, got, c.want)
		}
	}
}

// A target that net/http accepts is read as net/http reads it.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"/search?q=a", "//x%2fy?a?b", "/\xc3\xa9\"<", "http://h/p?q", "*", "/a%2Fb c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_ = parseTarget("GET", s, true)
		got := parseTarget("GET", s, false)
		if u, err := url.ParseRequestURI(s); err == nil && u.Opaque == "" && (s[0] == '/' || s == "*") {
			if got.path != u.EscapedPath() || got.query != u.RawQuery {
				t.Errorf("%q: %+v, want %q and %q", s, got, u.EscapedPath(), u.RawQuery)
			}
		}
	})
}
