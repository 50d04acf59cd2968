//go:build !race

// These tests use a single goroutine, so they run only without the race detector.

package middleware

import (
	"context"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/rules"
)

// Keys that a guard counts are canonical: an aggregator that takes its lines for those of another
// program counts the same keys.
func TestCountedKeysAreLeftAsTheyAre(t *testing.T) {
	seen := 0
	rapid.Check(t, func(rt *rapid.T) {
		by := func() rules.By {
			kind := rapid.SampledFrom([]rules.ByKind{rules.ByAll, rules.ByEach, rules.ByNames, rules.ByCombinations}).Draw(rt, "kind")
			b := rules.By{Kind: kind}
			if kind == rules.ByNames {
				b.Names = []rules.Param{{Name: "q"}, {Name: "é b"}, {Source: rules.Path, Name: "id"}}
			}
			return b
		}
		var ruleset []rules.Rule
		for i, route := range []string{"*", "GET /u/{id}", "GET /files/{path...}", "/se%61rch/caf%c3%a9", "GET /café", "why?b&a=1", "Search/Find"} {
			rule := hotRule(t, "r"+string(rune('0'+i)), route, by(), 1, 2)
			rule.ParamsOnly = rapid.Bool().Draw(rt, "params only")
			ruleset = append(ruleset, rule)
		}
		matched := hotRule(t, "matched", "*", byAll, 1, 2)
		ruleset = append(ruleset, matched)
		own := rapid.String().Draw(rt, "own key")
		f := newFixture(rt, rules.Rules{Rules: ruleset}, WithMatcher("matched", func(*http.Request) (string, bool) { return own, false }))
		text := rapid.OneOf(rapid.StringMatching(`[a-z0-9%&=+?:;~/. é\x80-]{0,30}`), rapid.String(), rapid.StringMatching(`[a-z]{500,700}`))
		for range 4 {
			if rapid.Bool().Draw(rt, "resource") {
				name := rapid.SampledFrom([]string{"Search/Find", "why?b&a=1", "what?", "GET x", "ü 1%"}).Draw(rt, "name")
				var params []rules.Param
				for range rapid.IntRange(0, 4).Draw(rt, "n") {
					params = append(params, rules.Param{
						Source: rules.Source(rapid.IntRange(0, int(rules.RPC)).Draw(rt, "source")),
						Name:   rapid.OneOf(rapid.SampledFrom([]string{"q", "", "path:id", ":"}), rapid.String()).Draw(rt, "param"), Value: text.Draw(rt, "value"),
					})
				}
				f.Enter(context.Background(), name, params...)
				continue
			}
			pattern := rapid.SampledFrom([]string{
				"", "GET /u/{id}", "/files/{path...}", "GET /se%61rch/caf%c3%a9", "GET /café", "/u/{id:[a-z]?}", "GET /u/:name?", "GET example.com/x", "GET /{$}", "/",
			}).Draw(rt, "pattern")
			path := rapid.SampledFrom([]string{"/u/7%2f8", "/u/%7e", "/files/a/%c3%a9+x", "/se%61rch/caf%C3%A9", "/caf%c3%a9", "/", "/u/:n%3f"}).Draw(rt, "path")
			req := get(pattern, path, text.Draw(rt, "query"))
			req.Method = rapid.SampledFrom([]string{"GET", "POST", "HEAD"}).Draw(rt, "method")
			f.Check(req)
		}
		for member := range f.keyCounts() {
			key, _ := rules.ParseKey(member)
			for i := range ruleset {
				if ruleset[i].ID != key.Rule {
					continue
				}
				seen++
				if text, changed := keytext.NewCanonicalizer(&ruleset[i]).Append(nil, []byte(key.Text)); changed {
					rt.Fatalf("rule for %s counts %q, which is not canonical: %q", ruleset[i].Match.Route, key.Text, text)
				}
			}
		}
	})
	if !testing.Short() && seen == 0 {
		t.Error("nothing was counted")
	}
}
