package base

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// escaped generates text as in keys: escapes and unreserved bytes.
func escaped(least, most int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "Z", "~", "%25", "%C3", "&", "="}), least, most),
		func(parts []string) string { return strings.Join(parts, "") })
}

var wholeEscapes = regexp.MustCompile(`^([^%]|%[0-9A-F]{2})*~[0-9a-f]{32}$`)

func TestCutKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{64, 65, 66, 128, 512}).Draw(t, "limit")
		a := escaped(0, 300).Draw(t, "a")
		b := escaped(0, 300).Draw(t, "b")
		if rapid.Bool().Draw(t, "related") {
			b = a + "x"
		}
		cutA, cutB := string(CutKey([]byte(a), limit)), string(CutKey([]byte(b), limit))
		if len(a) <= limit {
			if cutA != a {
				t.Fatalf("%q was cut to %q", a, cutA)
			}
			return
		}
		if len(cutA) > limit || len(cutA) < limit-2 || !wholeEscapes.MatchString(cutA) {
			t.Fatalf("%q was cut to %q, of %d bytes", a, cutA, len(cutA))
		}
		if !strings.HasPrefix(a, cutA[:len(cutA)-CutKeySuffix]) {
			t.Fatalf("%q does not begin %q", cutA, a)
		}
		if (a == b) != (cutA == cutB) {
			t.Fatalf("%q and %q are cut to %q and %q", a, b, cutA, cutB)
		}
		if again := string(CutKey([]byte(cutA), limit)); again != cutA {
			t.Fatalf("cut again: %q, %q", cutA, again)
		}
	})
}
