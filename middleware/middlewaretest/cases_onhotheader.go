package middlewaretest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// What middleware in front of the guard sets is of each request alone.
func testFront(t *testing.T, s Start) {
	var requests atomic.Int64
	f := new(fixture)
	f = startHotServer(t, s, Server{
		Routes: []Route{{Method: "GET", Pattern: "/items/{id}", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			f.calls.Add(1)
			w.Header().Set("X-Item", "7")
			_, _ = io.WriteString(w, "item")
		})}},
		Front: func(h http.Header) http.Header {
			return http.Header{
				"X-Request-Id": {fmt.Sprint(requests.Add(1))}, "Vary": {"Origin"},
				"Access-Control-Allow-Origin": {h.Get("Origin")}, "Set-Cookie": {"user=" + h.Get("X-User")},
			}
		},
	}, 1, "")
	seen := make(map[string]bool)
	for _, user := range []string{"ann", "bob", "eve"} {
		a := f.as("GET", "/items/7", "X-User", user, "Origin", "https://"+user)
		if a.status != http.StatusOK || a.body != "item" || a.header.Get("X-Item") != "7" {
			t.Errorf("%s: %+v", user, a)
		}
		if vary := strings.Join(a.header["Vary"], ", "); strings.Count(vary, "Origin") != 1 {
			t.Errorf("%s: Vary %q", user, vary)
		}
		for name, want := range map[string]string{"Access-Control-Allow-Origin": "https://" + user, "Set-Cookie": "user=" + user} {
			if got := a.header[name]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s %q, want %s", user, name, got, want)
			}
		}
		if ids := a.header["X-Request-Id"]; len(ids) != 1 || seen[ids[0]] {
			t.Errorf("%s: X-Request-Id %q of another", user, ids)
		} else {
			seen[ids[0]] = true
		}
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

// HEAD and conditional requests are answered from GET's answer.
func testConditions(t *testing.T, s Start) {
	f := new(fixture)
	f = startHot(t, s, 1, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		w.Header().Set("Etag", `"v1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "item")
	}))
	if a := f.as("GET", "/items/7", "If-None-Match", `"v1"`); a.status != http.StatusNotModified || a.body != "" || a.header.Get("Etag") != `"v1"` {
		t.Errorf("by its tag: %+v", a)
	}
	if a := f.get("/items/7"); a.status != http.StatusOK || a.body != "item" {
		t.Errorf("GET: %+v", a)
	}
	if a := f.as("GET", "/items/7", "If-None-Match", `"v2"`); a.status != http.StatusOK || a.body != "item" {
		t.Errorf("by another tag: %+v", a)
	}
	if a := f.send("HEAD", "/items/7"); a.status == http.StatusOK && (a.body != "" || a.header.Get("Content-Length") != "4") { // some routers have no HEAD
		t.Errorf("HEAD: %+v", a)
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

// A handler that compresses is asked once for each coding. Each client gets the same
// answer as if the item were not hot, so nothing is compressed twice.
func testCompression(t *testing.T, s Start) {
	body := strings.Repeat("compressible ", 500)
	f := new(fixture)
	f = startHot(t, s, 4, "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "7" {
			f.calls.Add(1)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if r.URL.Query().Has("inside") {
			w.Header().Set("Vary", "Accept-Encoding")
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				w.Header().Set("Content-Encoding", "gzip")
				compressed := gzip.NewWriter(w)
				defer compressed.Close()
				_, _ = io.WriteString(compressed, body)
				return
			}
		}
		_, _ = io.WriteString(w, body)
	}))
	for _, query := range []string{"?inside", "?outside"} {
		for range 2 {
			for _, coding := range []string{"gzip", "identity"} {
				hot := f.as("GET", "/items/7"+query, "Accept-Encoding", coding)
				cold := f.as("GET", "/items/8"+query, "Accept-Encoding", coding)
				if hot.status != http.StatusOK || hot.body != cold.body || hot.header.Get("Content-Encoding") != cold.header.Get("Content-Encoding") {
					t.Errorf("%s, %s: hot %d %s %.20q, otherwise %d %s %.20q", query, coding, hot.status, hot.header, hot.body, cold.status, cold.header, cold.body)
				}
				if !strings.HasPrefix(hot.header.Get("Cache-Status"), "hotparam; ") || strings.Contains(hot.header.Get("Cache-Status"), "detail=") {
					t.Errorf("%s, %s: %q", query, coding, hot.header["Cache-Status"])
				}
				// Some routers' middleware compresses again what a handler has compressed.
				if plain := decompressed(hot); plain != body && query == "?outside" {
					t.Errorf("%s, %s: %.20q…", query, coding, plain)
				}
			}
		}
	}
	if n := f.calls.Load(); n != 4 {
		t.Errorf("the handler was called %d times for two targets and two codings", n)
	}
}

// decompressed returns the body without its content coding.
func decompressed(a response) string {
	if a.header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	reader, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		return err.Error()
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return err.Error()
	}
	return string(plain)
}
