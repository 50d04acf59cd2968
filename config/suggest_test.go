package config

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"limits": "limit", "limti": "limit", "ruote": "route", "rutes": "rules", "lmt": "limit",
		"x": "", "": "", "ratelimiter": "", "hold": "",
	} {
		if got := nearest(word, []string{"limit", "route", "rules", "by"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// distance is symmetric, 0 only for equal words, and at most one more after one
// more edit.
func TestDistance(t *testing.T) {
	const most = 100
	word := rapid.StringMatching(`[abc]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b, most)
		if d != distance(b, a, most) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d, back %d", a, b, d, distance(b, a, most))
		}
		at := rapid.IntRange(0, len(b)).Draw(t, "at")
		if e := distance(a, b[:at]+"d"+b[at:], most); e > d+1 || e < d-1 || e == 0 {
			t.Fatalf("distance(%q, %q) = %d; one letter more: %d", a, b, d, e)
		}
	})
}
