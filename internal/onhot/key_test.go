package onhot

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// seen returns everything that a handler can see of a request.
func seen(r *http.Request, pathValues ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %q %s %v %q %q tls=%v %q\n", r.Method, r.RequestURI, r.Host, r.Proto, r.ContentLength, r.RemoteAddr, r.Pattern, r.TLS != nil, r.TransferEncoding)
	fmt.Fprintf(&b, "%#v\n", *r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fmt.Fprintf(&b, "%q: %q\n", name, r.Header[name])
	}
	for _, name := range pathValues {
		fmt.Fprintf(&b, "%s=%q\n", name, r.PathValue(name))
	}
	fmt.Fprint(&b, r.Context().Value(userKey{}))
	return b.String()
}

type userKey struct{}

// drawRequest draws a request from few values, so that two are often alike, and with parts that run into
// each other.
func drawRequest(t *rapid.T, name string) *http.Request {
	draw := func(what string, values ...string) string {
		return rapid.SampledFrom(values).Draw(t, name+" "+what)
	}
	r := &http.Request{Method: draw("method", "GET", "HEAD"), Header: make(http.Header), Proto: "HTTP/1.1"}
	r.Host = draw("host", "", "a", "ab")
	r.RequestURI = draw("uri", "/", "/b", "b/")
	r.URL = &url.URL{
		Scheme: draw("scheme", "", "http"), Host: draw("url host", "", "a"), Path: draw("path", "", "/", "/b"), RawPath: draw("raw path", "", "/%62"),
		RawQuery: draw("query", "", "q=1", "q=1&b"), ForceQuery: draw("force", "", "y") == "y", Fragment: draw("fragment", "", "/"), OmitHost: draw("omit", "", "y") == "y",
		Opaque: draw("opaque", "", "b"),
	}
	if r.Pattern = draw("pattern", "", "/{id}/{rest...}", "/{id}/{$}"); r.Pattern != "" {
		r.SetPathValue("id", draw("id", "", "1", "11"))
		r.SetPathValue("rest", draw("rest", "", "1", "11"))
		r.SetPathValue("user", draw("user", "ann", "bob")) // no wildcard
	}
	for _, name := range []string{"X-A", "X-B", "X-User", "Accept-Encoding", "User-Agent", "X-Forwarded-Host"} {
		for range rapid.IntRange(0, 2).Draw(t, name) {
			r.Header.Add(name, draw(name, "", "gzip", "br, gzip", "a"))
		}
	}
	if draw("cookies", "", "y") == "y" {
		r.Header.Add("Cookie", draw("cookie", "lang=en", "sid=1; lang=en", "lang=en; lang=de", "lang=; sid=2"))
	}
	r.RemoteAddr = draw("address", "192.0.2.1:1", "192.0.2.2:2")
	return r.WithContext(context.WithValue(context.Background(), userKey{}, draw("identity", "ann", "bob")))
}

// Requests have the same key exactly if their handlers see the same, and their leaders see nothing
// of the users.
func TestKeyIsWhatTheHandlerSees(t *testing.T) {
	p := newPolicy(t, PolicyConfig{Cache: 1, Vary: []string{"header:x-a", "header:x-b", "cookie:lang"}})
	same := 0
	rapid.Check(t, func(t *rapid.T) {
		one := drawRequest(t, "one")
		two := one
		if rapid.Bool().Draw(t, "different") {
			two = drawRequest(t, "two")
		}
		two = two.Clone(context.WithValue(context.Background(), userKey{}, "carl"))
		two.Header.Set("X-User", "carl")
		two.RemoteAddr = "192.0.2.3:3"
		keys, views := [2]string{}, [2]string{}
		for i, r := range []*http.Request{one, two} {
			keys[i], _ = p.key(r, "tag")
			leader := p.leaderRequest(context.Background(), r)
			views[i] = seen(leader, "id", "rest", "user")
			for _, secret := range []string{"carl", "ann", "bob", "192.0.2", "sid=", "X-User", "X-Forwarded-Host", "User-Agent"} {
				if strings.Contains(views[i], secret) {
					t.Fatalf("the handler sees %s:\n%s", secret, views[i])
				}
			}
		}
		if (keys[0] == keys[1]) != (views[0] == views[1]) {
			t.Fatalf("keys %q %q of handlers that see\n%s\n%s", keys[0], keys[1], views[0], views[1])
		}
		if keys[0] == keys[1] {
			same++
		}
	})
	if same < 10 {
		t.Errorf("%d pairs with the same key", same)
	}
}

func TestKeysOfPoliciesAndTags(t *testing.T) {
	p, q := newPolicy(t, hour), newPolicy(t, hour)
	r := newRequest("GET", "/")
	a, _ := p.key(r, "a")
	b, _ := p.key(r, "b")
	other, _ := q.key(r, "a")
	secure, _ := p.key(newRequest("GET", "https://example.com/"), "a")
	head, _ := p.key(newRequest("HEAD", "/"), "a")
	if a == b || a == other || a == secure || a != head {
		t.Error("keys", a, b, other, secure, head)
	}
}

func TestLeaderSeesThatItIsHTTPS(t *testing.T) {
	p := newPolicy(t, hour)
	if p.leaderRequest(context.Background(), newRequest("GET", "https://example.com/")).TLS == nil {
		t.Error("https has no TLS")
	}
	if p.leaderRequest(context.Background(), newRequest("GET", "http://example.com/")).TLS != nil {
		t.Error("http has TLS")
	}
}
