package gateway

import "testing"

func TestCleanPath(t *testing.T) {
	for path, want := range map[string]string{
		"":                       "/",
		"/":                      "/",
		"//":                     "/",
		"/search":                "/search",
		"/search/":               "/search/",
		"//search":               "/search",
		"/a//search///x//":       "/a/search/x/",
		"/./search":              "/search",
		"/search/.":              "/search/",
		"/a/../search":           "/search",
		"/a/b/../../search":      "/search",
		"/../../search":          "/search",
		"/a/..":                  "/",
		"/a/b/..":                "/a/",
		"/%2e/search":            "/search",
		"/a/%2E%2e/search":       "/search",
		"/a/.%2e/search":         "/search",
		"/search;v=1":            "/search",
		"/search;v=1;w=2/x;y":    "/search/x",
		"/;v/search":             "/search",
		"/a/..;v=1/search":       "/search",
		"/...":                   "/...",
		"/.well-known/x":         "/.well-known/x",
		"/a%2Fb":                 "/a%2Fb",
		"/a%2f..%2fb":            "/a%2f..%2fb",
		"/%2esearch":             "/%2esearch",
		"/search%3Bv=1":          "/search%3Bv=1",
		"search":                 "/search",
		"/a/../search//x%2Fy;z?": "/search/x%2Fy",
	} {
		if got := CleanPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
		if again := CleanPath(want); again != want {
			t.Errorf("%q is not clean: %q", want, again)
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, seed := range []string{"/a/../b//c;d/%2e%2E/e/", "/..;/", "//"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		once := CleanPath(path)
		if again := CleanPath(once); again != once {
			t.Errorf("%q: %q, and then %q", path, once, again)
		}
		if once == "" || once[0] != '/' {
			t.Errorf("%q: %q", path, once)
		}
	})
}
