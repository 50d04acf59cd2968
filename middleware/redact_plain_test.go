package middleware

import (
	"slices"
	"strings"
	"testing"
)

// A query that needs no decoding takes a fast path, which writes values unchanged. Rules that
// redact one of the values must not take it, whatever their by is.
func TestShortWayRedacts(t *testing.T) {
	for name, rule := range map[string]struct {
		redact []string
		by     []string // empty: all
	}{
		"named":         {[]string{"q"}, []string{"q"}},
		"one of two":    {[]string{"q"}, []string{"page", "q"}},
		"all":           {[]string{"q"}, nil},
		"query and not": {[]string{"q", "addr:ip"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			by := byAll
			if rule.by != nil {
				by = byNames(rule.by...)
			}
			f := newFixture(t, redacting(rule.redact, hotRule(t, "r", "GET /s", by, 3600, 1)))
			f.Check(Request{Method: "GET", Path: "/s", Pattern: "GET /s", Query: "page=1&q=" + hushed})
			keys := f.keys()
			if len(keys) != 1 || strings.Contains(keys[0], hushed) || !slices.ContainsFunc(keys, func(k string) bool { return strings.Contains(k, "q=hmac-") }) {
				t.Errorf("keys %q, want one with q redacted", keys)
			}
		})
	}
}
