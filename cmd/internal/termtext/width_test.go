package termtext

import (
	"testing"

	"pgregory.net/rapid"
)

func TestShorten(t *testing.T) {
	const key = "GET /Archives/edgar/data?cik=1556148"
	for width, want := range map[int]string{
		40: key, 36: key,
		35: "GET …/edgar/data?cik=1556148", 22: "GET …/data?cik=1556148",
		21: "GET …?cik=1556148", 12: "GET …1556148", 10: "…k=1556148", 1: "…", 0: "",
	} {
		if got := Shorten(key, width); got != want {
			t.Errorf("to %d: %q, want %q", width, got, want)
		}
	}
	if got, want := Shorten("/äöü/abcdefghijklmn", 18), "…/abcdefghijklmn"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		text, width := rapid.String().Draw(t, "text"), rapid.IntRange(0, 30).Draw(t, "width")
		if got := Shorten(text, width); len([]rune(got)) > width {
			t.Fatalf("%q", got)
		}
	})
}
