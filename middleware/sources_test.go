package middleware

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// escapeLikeURLs escapes a text as keys do, with net/url and not our own code.
func escapeLikeURLs(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// addrText returns the identity of an address on a level, computed with package net.
func addrText(level, addr string) (string, bool) {
	ip := net.ParseIP(addr)
	if ip == nil {
		return "", false
	}
	family, digits, found := strings.Cut(level, "/")
	bits, _ := strconv.Atoi(digits)
	size := 128
	if v4 := ip.To4(); v4 != nil {
		ip, size = v4, 32
	}
	switch {
	case !found:
		bits = map[int]int{32: 32, 128: 64}[size]
	case (family == "v4") != (size == 32):
		return "", false
	}
	network := net.IPNet{IP: ip.Mask(net.CIDRMask(bits, size)), Mask: net.CIDRMask(bits, size)}
	if bits == size {
		return network.IP.String(), true
	}
	return network.String(), true
}

// The keys of a rule are the ones that net/http, net/url and package net find in the request:
// every combination of the values that are present.
func TestKeysOfSources(t *testing.T) {
	all := []string{"q", "header:x-plan", "header:host", "cookie:cart", "cookie:Cart", "addr:ip", "ctx:user", "path:id"}
	seen := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID[string]).Draw(rt, "names")
		if !slices.Contains(names, "addr:ip") && rapid.Bool().Draw(rt, "network") {
			names = append(names, rapid.SampledFrom([]string{"addr:v4/24", "addr:v6/48", "addr:v4/7"}).Draw(rt, "level"))
		}
		value := rapid.SampledFrom([]string{"", "1", "2", "Gold", "a b", `"q"`, "é", "x=y", "a,b", "%41"})
		r := httptest.NewRequest("GET", "http://shop.example/u/7", nil)
		r.URL.RawQuery = "q=" + url.QueryEscape(value.Draw(rt, "q"))
		for range rapid.IntRange(0, 2).Draw(rt, "headers") {
			r.Header.Add("x-pLaN", value.Draw(rt, "plan"))
		}
		for range rapid.IntRange(0, 2).Draw(rt, "cookie lines") {
			r.Header.Add("Cookie", fmt.Sprintf("other=1; %s=%s;cart=%s", rapid.SampledFrom([]string{"Cart", "cart2"}).Draw(rt, "cookie"), value.Draw(rt, "cookie"), value.Draw(rt, "cart")))
		}
		r.Host = rapid.SampledFrom([]string{"", "shop.example", "shop.example:80"}).Draw(rt, "host")
		peer := rapid.SampledFrom([]string{"192.0.2.7", "2001:db8:1:2:3::4", "::ffff:192.0.2.7", ""}).Draw(rt, "peer")
		r.RemoteAddr = "@"
		if peer != "" {
			r.RemoteAddr = net.JoinHostPort(peer, "1234")
		}
		user := value.Draw(rt, "user")
		r = r.WithContext(context.WithValue(r.Context(), userKey{}, user))

		// found holds the values of each name, as the standard library finds them.
		found := map[string][]string{}
		for _, name := range names {
			switch source, rest, _ := strings.Cut(name, ":"); source {
			case "q":
				found[name] = r.URL.Query()["q"]
			case "path":
				found[name] = []string{"7"}
			case "header":
				if found[name] = r.Header.Values(rest); rest == "host" && r.Host != "" {
					found[name] = []string{r.Host}
				}
			case "cookie":
				for _, c := range r.CookiesNamed(rest) {
					found[name] = append(found[name], c.Value)
				}
			case "addr":
				if text, ok := addrText(rest, peer); ok {
					found[name] = []string{text}
				}
			case "ctx":
				if user != "" {
					found[name] = []string{user}
				}
			}
		}
		sort.Slice(names, func(i, j int) bool { // as they stand in a key
			a, b := bareName(names[i]), bareName(names[j])
			return a < b
		})
		keys := map[string]bool{"": true}
		for _, name := range names {
			if len(found[name]) == 0 {
				continue
			}
			next := map[string]bool{}
			for key := range keys {
				for _, v := range found[name] {
					text := escapeLikeURLs(bareName(name)) + "=" + escapeLikeURLs(v)
					if source, _, ok := strings.Cut(name, ":"); ok {
						text = source + ":" + text
					}
					if key != "" {
						text = key + "&" + text
					}
					next[text] = true
				}
			}
			keys = next
		}
		delete(keys, "")
		if len(keys) > rules.MaxKeys || sameName(names) { // which then are the first, or ordered by value, is tested elsewhere
			return
		}
		by := byNames(rapid.Permutation(names).Draw(rt, "order")...)
		f := newFixture(rt, rules.Rules{Rules: []rules.Rule{hotRule(t, "r", "GET /u/{id}", by, 3600, 1)}}, WithParam("user", contextUser))
		f.Check(Request{Context: r.Context(), Method: "GET", Path: "/u/7", Query: r.URL.RawQuery, Pattern: "GET /u/{id}", HTTP: r})
		want := []string{}
		for key := range keys {
			want = append(want, "r GET /u/{id}?"+key)
		}
		slices.Sort(want)
		got := f.keys()
		if !slices.Equal(got, want) && len(got)+len(want) > 0 {
			rt.Fatalf("by %q: keys %q\nwant %q", names, got, want)
		}
		for _, name := range names {
			seen[name] += len(found[name])
		}
	})
	for _, name := range all {
		if seen[name] == 0 && !testing.Short() { // which draws few
			t.Errorf("no request had %s", name)
		}
	}
}

type userKey struct{}

func contextUser(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}

func bareName(name string) string {
	_, bare, ok := strings.Cut(name, ":")
	if !ok {
		return name
	}
	return bare
}

func sameName(names []string) bool {
	seen := map[string]bool{}
	for _, name := range names {
		seen[bareName(name)] = true
	}
	return len(seen) < len(names)
}

// Parameters of all sources can decide wherever a rule may name them.
func TestSourcesInMatchExceptAndPriority(t *testing.T) {
	req := func(header http.Header, peer string) Request {
		r := get("GET /s", "/s", "q=1")
		r.HTTP = &http.Request{Header: header, RemoteAddr: peer}
		return r
	}
	gold, free := http.Header{"X-Plan": {"gold"}}, http.Header{"X-Plan": {"free"}}
	rule := limitRule(t, "r", "GET /s", rules.By{}, 1, 1)
	rule.Match.Query = []rules.QueryMatch{{Name: "header:x-plan", Value: "fr*"}, {Name: "addr:v4/8", Value: "10.0.0.0/8"}}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	for i, test := range []struct {
		req  Request
		pass bool
	}{
		{req(free, "10.1.1.1:1"), true},
		{req(free, "10.1.1.1:1"), false},
		{req(gold, "10.1.1.1:1"), true},
		{req(free, "192.0.2.1:1"), true},
		{get("GET /s", "/s", "q=1"), true},
	} {
		if d := f.Check(test.req); d.Allowed != test.pass {
			t.Errorf("match, request %d: %+v", i, d)
		}
	}

	rule = limitRule(t, "r", "GET /s", byNames("header:x-plan"), 1, 1)
	rule.Except = []rules.Exception{
		{Values: []rules.QueryMatch{{Name: "header:x-plan", Value: "gold"}}, Action: rules.Allow},
		{Values: []rules.QueryMatch{{Name: "header:x-plan", Value: "ev*"}}, Action: rules.Block},
	}
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	for i, test := range []struct {
		header http.Header
		pass   bool
	}{
		{free, true}, {free, false}, {gold, true}, {gold, true}, {http.Header{"X-Plan": {"evil"}}, false}, {nil, true}, {nil, true},
		{http.Header{"X-Plan": {"gold", "free"}}, false}, // the second value hides nothing
	} {
		if d := f.Check(req(test.header, "10.1.1.1:1")); d.Allowed != test.pass {
			t.Errorf("except, request %d: %+v", i, d)
		}
	}

	rule = limitRule(t, "r", "GET /s", rules.By{}, 1, 4)
	rule.Limit.Priority = &rules.Priority{Source: rules.Header, Name: "x-plan", First: []string{"gold"}}
	f = newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	passed := map[string]int{}
	for range 5 {
		if f.Check(req(free, "")).Allowed {
			passed["free"]++
		}
	}
	for range 5 {
		if f.Check(req(gold, "")).Allowed {
			passed["gold"]++
		}
	}
	if passed["free"] != 2 || passed["gold"] != 2 {
		t.Errorf("of four permits %v passed: want half of them left to gold", passed)
	}
}

// Keys of all parameters consist of the query's and the path's, whatever other rules name.
func TestOtherRulesDoNotSeeSources(t *testing.T) {
	r := httptest.NewRequest("GET", "/u/7?q=1", nil)
	r.Header.Set("X-Plan", "gold")
	combined := rules.By{Kind: rules.ByCombinations}
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{
		hotRule(t, "n", "GET /u/{id}", byNames("header:x-plan", "addr:ip", "path:id"), 0, 0),
		hotRule(t, "a", "GET /u/{id}", byAll, 0, 0), hotRule(t, "e", "GET /u/{id}", byEach, 0, 0), hotRule(t, "c", "GET /u/{id}", combined, 0, 0),
		hotRule(t, "any", "*", byAll, 0, 0),
	}})
	f.Check(Request{Method: "GET", Path: "/u/7", Query: "q=1", Pattern: "GET /u/{id}", HTTP: r})
	want := []string{
		"a GET /u/{id}?path:id=7&q=1", "any GET /u/{id}?path:id=7&q=1", "c GET /u/{id}?path:id=7", "c GET /u/{id}?path:id=7&q=1", "c GET /u/{id}?q=1",
		"e GET /u/{id}?path:id=7", "e GET /u/{id}?q=1", "n GET /u/{id}?path:id=7&addr:ip=192.0.2.1&header:x-plan=gold",
	}
	if got := f.keys(); !slices.Equal(got, want) {
		t.Errorf("keys %q\nwant %q", got, want)
	}
	if s := f.Stats(); s.Withheld != 0 {
		t.Errorf("%d parameters withheld", s.Withheld)
	}
}

// The function of WithParam is called once per request, and only for requests whose rules name it.
// Requests without a value are counted.
func TestWithParam(t *testing.T) {
	calls := 0
	user := func(ctx context.Context) string { calls++; return contextUser(ctx) }
	ruleset := []rules.Rule{
		hotRule(t, "a", "GET /s", byNames("ctx:user"), 0, 0), hotRule(t, "b", "GET /s", byNames("ctx:user", "q"), 0, 0), hotRule(t, "c", "GET /s/{id}", byNames("path:id"), 0, 0),
		hotRule(t, "job", "job", byNames("ctx:user"), 0, 0),
	}
	f := newFixture(t, rules.Rules{Rules: ruleset}, WithParam("user", user), WithParam("tenant", func(context.Context) string { panic("nobody names it") }))
	ann := context.WithValue(t.Context(), userKey{}, "ann")
	in := get("GET /s", "/s", "q=1")
	in.Context = ann
	f.Check(in)
	if got := f.keys(); calls != 1 || !slices.Equal(got, []string{"a GET /s?ctx:user=ann", "b GET /s?q=1&ctx:user=ann"}) {
		t.Errorf("keys %q after %d calls", got, calls)
	}
	other := get("GET /s/{id}", "/s/7", "")
	other.Context = ann
	f.Check(other)
	if f.keyCounts(); calls != 1 {
		t.Errorf("%d calls: a request whose rules do not name the parameter asked for it", calls)
	}
	f.Check(get("GET /s", "/s", "q=1")) // no user
	if got := f.keys(); f.Stats().Absent != 1 || !slices.Equal(got, []string{"b GET /s?q=1"}) {
		t.Errorf("keys %q, absent %d", got, f.Stats().Absent)
	}
	f.Enter(ann, "job")
	if got := f.keys(); !slices.Equal(got, []string{"job job?ctx:user=ann"}) {
		t.Errorf("Enter: keys %q", got)
	}
	if _, err := New(&rules.Rules{Namespace: "n", Rules: ruleset[:1]}, f.counts); err == nil || !strings.Contains(err.Error(), `rule "a"`) || !strings.Contains(err.Error(), `WithParam("user"`) {
		t.Errorf("without the option: %v", err)
	}
}

// Handler passes on all sources.
func TestHandlerReadsSources(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byNames("header:x-plan", "cookie:cart", "addr:v4/24", "ctx:user"), 0, 0)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}}, WithParam("user", contextUser))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /s", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest("GET", "/s", nil)
	r.Header.Set("X-Plan", "gold")
	r.AddCookie(&http.Cookie{Name: "cart", Value: "7"})
	r = r.WithContext(context.WithValue(r.Context(), userKey{}, "ann"))
	f.Handler(mux).ServeHTTP(httptest.NewRecorder(), r)
	want := []string{"r GET /s?cookie:cart=7&ctx:user=ann&addr:v4%2F24=192.0.2.0%2F24&header:x-plan=gold"}
	if got := slices.Collect(maps.Keys(f.keyCounts())); !slices.Equal(got, want) {
		t.Errorf("keys %q\nwant %q", got, want)
	}
}
