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

	"github.com/hotparam/hotparam/rules"
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
	fmt.Fprintf(&b, " server=%p", r.Context().Value(http.ServerContextKey))
	return b.String()
}

type userKey struct{}

var testServers = map[string]*http.Server{"1": {}, "2": {}}

// parts are the values of a request's parts by their names. They are few, and some run into each
// other without a border.
var parts = map[string][]string{
	"method": {"GET", "HEAD"}, "host": {"", "a", "ab"}, "uri": {"/", "/b", "b/"}, "scheme": {"", "http"}, "url host": {"", "a"},
	"path": {"", "/", "/b"}, "raw path": {"", "/b", "/%62"}, "query": {"", "q=1", "q=1&b"}, "force": {"", "y"}, "fragment": {"", "/"},
	"raw fragment": {"", "/"}, "omit": {"", "y"}, "opaque": {"", "b"}, "pattern": {"", "/{id}/{rest...}", "/{id}/{$}"}, "id": {"", "1", "11"},
	"rest": {"", "1", "11"}, "user": {"ann", "bob"}, "address": {"192.0.2.1:1", "192.0.2.2:2"}, "cookie": {"", "lang=en", "sid=1; lang=en", "lang=en; lang=de", "lang=; sid=2"},
	"server": {"", "1", "2"}, "X-A": {"", "a", "a|a", "aa"}, "X-B": {"", "a", "a|a", "aa"}, "X-User": {"", "ann"}, "User-Agent": {"", "x"}, "X-Forwarded-Host": {"", "x"},
	"Accept-Encoding": {"", "gzip", "br, gzip", "gzip|br"},
}

// neighbours are parts that follow each other in the key.
var neighbours = []string{"opaque", "url host", "path", "raw path", "query", "fragment", "raw fragment"}

func makeRequest(value map[string]string) *http.Request {
	r := &http.Request{Method: value["method"], Header: make(http.Header), Proto: "HTTP/1.1", Host: value["host"], RequestURI: value["uri"], Pattern: value["pattern"], RemoteAddr: value["address"]}
	r.URL = &url.URL{
		Scheme: value["scheme"], Host: value["url host"], Path: value["path"], RawPath: value["raw path"], RawQuery: value["query"], ForceQuery: value["force"] != "",
		Fragment: value["fragment"], RawFragment: value["raw fragment"], OmitHost: value["omit"] != "", Opaque: value["opaque"],
	}
	if r.Pattern != "" {
		for _, name := range []string{"id", "rest", "user"} { // user is no wildcard
			r.SetPathValue(name, value[name])
		}
	}
	for _, name := range []string{"X-A", "X-B", "X-User", "Accept-Encoding", "User-Agent", "X-Forwarded-Host"} {
		if value[name] != "" {
			r.Header[name] = strings.Split(value[name], "|")
		}
	}
	if value["cookie"] != "" {
		r.Header.Set("Cookie", value["cookie"])
	}
	ctx := context.WithValue(context.Background(), userKey{}, value["user"])
	if server := testServers[value["server"]]; server != nil {
		ctx = context.WithValue(ctx, http.ServerContextKey, server)
	}
	return r.WithContext(ctx)
}

// Requests have the same key exactly if their handlers see the same, and their leaders see nothing
// of the users.
func TestKeyIsWhatTheHandlerSees(t *testing.T) {
	c := newCache(t, Config{})
	defer closeCache(t, c)
	p := NewPolicy(rules.OnHot{Cache: 1, Vary: []string{"header:x-a", "header:x-b", "cookie:lang"}})
	same, different := 0, 0
	names := slices.Sorted(maps.Keys(parts))
	check := func(t *rapid.T) {
		value := make(map[string]string)
		draw := func(name string) { value[name] = rapid.SampledFrom(parts[name]).Draw(t, name) }
		for _, name := range names {
			draw(name)
		}
		one := makeRequest(value)
		draw(rapid.SampledFrom(names).Draw(t, "part"))
		if i := rapid.IntRange(0, len(neighbours)-1).Draw(t, "swap"); rapid.Bool().Draw(t, "swaps") {
			a, b := neighbours[i], neighbours[(i+1)%len(neighbours)]
			value[a], value[b] = value[b], value[a]
		}
		value["X-User"], value["address"], value["user"] = "carl", "192.0.2.3:3", "carl"
		two := makeRequest(value)
		keys, views := [2]string{}, [2]string{}
		for i, r := range []*http.Request{one, two} {
			keys[i], _ = p.key(r, "tag")
			ctx, cancel := c.leaderContext(r)
			leader := p.leaderRequest(ctx, r)
			cancel()
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
		} else {
			different++
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			check(t)
		}
	})
	if same < 10 || different < 10 {
		t.Errorf("%d pairs with the same key, %d with different ones", same, different)
	}
}

func TestKeysOfPoliciesAndTags(t *testing.T) {
	p, q := NewPolicy(hour), NewPolicy(hour)
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
	p := NewPolicy(hour)
	if p.leaderRequest(context.Background(), newRequest("GET", "https://example.com/")).TLS == nil {
		t.Error("https has no TLS")
	}
	if p.leaderRequest(context.Background(), newRequest("GET", "http://example.com/")).TLS != nil {
		t.Error("http has TLS")
	}
}
