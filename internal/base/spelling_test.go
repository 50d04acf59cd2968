package base

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearestWord(t *testing.T) {
	for word, want := range map[string]string{
		"limits": "limit", "limti": "limit", "ruote": "route", "rutes": "rules", "lmt": "limit",
		"x": "", "": "", "ratelimiter": "", "hold": "",
	} {
		if got := NearestWord(word, []string{"limit", "route", "rules", "by"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// The distance of two words is symmetric, 0 only for equal words, 1 for one edit, and never more
// than replacing every letter.
func TestEditDistance(t *testing.T) {
	const most = 100
	word := rapid.StringMatching(`[abc]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := EditDistance(a, b, most)
		if d != EditDistance(b, a, most) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("EditDistance(%q, %q) = %d, back %d", a, b, d, EditDistance(b, a, most))
		}
		at := rapid.IntRange(0, len(a)-1).Draw(t, "at")
		for _, edited := range []string{
			a[:at] + "x" + a[at:], a[:at] + a[at+1:], a[:at] + "x" + a[at+1:], // insert, delete, replace
		} {
			if d := EditDistance(a, edited, most); d != 1 {
				t.Fatalf("EditDistance(%q, %q) = %d, want 1", a, edited, d)
			}
		}
		if d := EditDistance(a+"xy", a+"yx", most); d != 1 {
			t.Fatalf("swapped: %d, want 1", d)
		}
	})
}
