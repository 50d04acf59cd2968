package base

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseJSONPath(t *testing.T) {
	for text, want := range map[string][]JSONPathStep{
		"user":                         {{Name: "user"}},
		"a.b":                          {{Name: "a"}, {Name: "b"}},
		"items.*.id":                   {{Name: "items"}, {Element: true}, {Name: "id"}},
		"*":                            {{Element: true}},
		`\*`:                           {{Name: "*"}},
		`a\.b.c`:                       {{Name: "a.b"}, {Name: "c"}},
		`a\\.b`:                        {{Name: `a\`}, {Name: "b"}},
		"a*.**":                        {{Name: "a*"}, {Name: "**"}},
		"a é:=&":                       {{Name: "a é:=&"}},
		"":                             nil,
		"a..b":                         nil,
		".a":                           nil,
		"a.":                           nil,
		`a\b`:                          nil,
		`a\`:                           nil,
		`a\*`:                          nil,
		strings.Repeat("a.", 15):       nil,
		strings.Repeat("a.", 16):       nil,
		"a" + strings.Repeat(".a", 16): nil,
	} {
		got, message := ParseJSONPath(text)
		if !slices.Equal(got, want) || (message == "") != (want != nil) {
			t.Errorf("%q: %v %q, want %v", text, got, message, want)
		}
	}
	if steps, message := ParseJSONPath("a" + strings.Repeat(".a", MaxJSONPathSteps-1)); len(steps) != MaxJSONPathSteps || message != "" {
		t.Errorf("%d steps: %q", len(steps), message)
	}
}

// For any names, a path is read back from its only spelling.
func TestEachJSONPathHasOneText(t *testing.T) {
	texts := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune(`ab.*\`)), 1, 8, -1).Draw(t, "text")
		steps, message := ParseJSONPath(text)
		if message != "" {
			return
		}
		var b, key strings.Builder
		for i, s := range steps {
			if i > 0 {
				b.WriteByte('.')
			}
			switch name := strings.NewReplacer(".", `\.`, `\`, `\\`).Replace(s.Name); {
			case s.Element:
				b.WriteByte('*')
				key.WriteString("[]")
			case s.Name == "*":
				b.WriteString(`\*`)
			default:
				b.WriteString(name)
			}
			key.WriteString(s.Name + "\x00")
		}
		if b.String() != text {
			t.Fatalf("%q is %v, which is written %q", text, steps, b.String())
		}
		if other, found := texts[key.String()]; found && other != text {
			t.Fatalf("%q and %q are one path", text, other)
		}
		texts[key.String()] = text
	})
}
