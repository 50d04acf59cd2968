package middleware

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestHeaders(t *testing.T) {
	quota := func(change func(*rules.Rule)) rules.Rule {
		r := limitRule(t, "search", "*", rules.By{}, 1, 1)
		r.Limit.Quota = rules.Quota{Rate: rules.Rate{N: 100, Per: time.Minute}, Burst: 100}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		rule          rules.Rule
		policy, limit string
	}{
		"bucket":      {quota(func(*rules.Rule) {}), `"search";q=100;w=60`, `"search";r=99;t=1`},
		"small burst": {quota(func(r *rules.Rule) { r.Limit.Burst = 3 }), `"search";q=3;w=2`, `"search";r=2;t=1`},
		"window":      {quota(func(r *rules.Rule) { r.Limit.Algorithm = rules.FixedWindow }), `"search";q=100;w=60`, `"search";r=99;t=60`},
		"bytes":       {quota(func(r *rules.Rule) { r.Count = rules.Bytes }), `"search";q=100;qu="content-bytes";w=60`, `"search";r=100`},
		"units":       {quota(func(r *rules.Rule) { r.Count = rules.Units }), `"search";q=100;qu="units";w=60`, `"search";r=100`},
		"concurrency": {busyRule(t, "search", rules.By{}, 8, 0), `"search";q=8;qu="concurrent-requests"`, `"search";r=7`},
		"none":        {hotRule(t, "search", "*", byAll, 1, 1), "", ""},
	} {
		f := newFixture(t, rules.Rules{Rules: []rules.Rule{c.rule}}, WithHeaders())
		w := serve(f.Handler(ok), "GET", "/s?q=1")
		if p, l := w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"); p != c.policy || l != c.limit {
			t.Errorf("%s: %s and %s,\nwant %s and %s", name, p, l, c.policy, c.limit)
		}
		if w.Header().Get("X-RateLimit-Limit") != "" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}

// Refused requests get headers, too, in the old style or in both styles.
func TestHeadersLegacy(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 1)}}, WithHeaders(LegacyHeaders))
	h := f.Handler(ok)
	serve(h, "GET", "/s")
	before := time.Now().Unix()
	header := serve(h, "GET", "/s").Header()
	reset, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	if err != nil || reset < before+3600 || reset > time.Now().Unix()+3600 {
		t.Errorf("reset %d, %v", reset-before, err)
	}
	if header.Get("X-RateLimit-Limit") != "1" || header.Get("X-RateLimit-Remaining") != "0" || header.Get("RateLimit") != "" {
		t.Errorf("%v", header)
	}
	both := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "r", "*", rules.By{}, 1, 1)}}, WithHeaders(LegacyHeaders, RateLimitHeaders)).Handler(ok)
	if header := serve(both, "GET", "/s").Header(); header.Get("RateLimit") == "" || header.Get("X-RateLimit-Limit") == "" {
		t.Errorf("%v", header)
	}
}
