package middleware

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A flood of cookies hides none, makes a bounded number of keys, and takes time in proportion to
// its size.
func TestFloodsOfCookiesAndHeaders(t *testing.T) {
	rule := hotRule(t, "r", "GET /s", byNames("cookie:cart", "header:x-plan"), 0, 0)
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{rule}})
	var others, carts strings.Builder
	for i := range 10_000 {
		others.WriteString("c" + strings.Repeat("x", i%7) + "=1; ")
		carts.WriteString("cart=" + strings.Repeat("v", i%100) + string(rune('a'+i%26)) + "; ")
	}
	req := get("GET /s", "/s", "")
	req.HTTP = &http.Request{Header: http.Header{"Cookie": {others.String() + "cart=hidden"}}}
	f.Check(req)
	if got := f.keys(); !slices.Equal(got, []string{"r GET /s?cookie:cart=hidden"}) {
		t.Errorf("behind 10,000 others: %q", got)
	}
	plans := make([]string, 10_000)
	for i := range plans {
		plans[i] = strings.Repeat("p", i%500)
	}
	req.HTTP = &http.Request{Header: http.Header{"Cookie": {carts.String()}, "X-Plan": plans}}
	start := time.Now()
	f.Check(req)
	if took := time.Since(start); took > time.Second { // some 20 ms; n² comparisons would be seconds
		t.Errorf("10,000 cookies of the name and 10,000 headers took %v", took)
	}
	if got := f.keys(); len(got) != rules.MaxKeys+1 || !slices.Contains(got, "r GET /s?~more") {
		t.Errorf("%d keys: want %d and ~more", len(got), rules.MaxKeys)
	}
}
