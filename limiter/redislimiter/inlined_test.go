package redislimiter

import (
	"regexp"
	"strings"
	"testing"
)

// In the scripts of limits each name has one value in all parts. No name occurs in a text, where it
// would be replaced as well. After inlining, none is left.
func TestConstantsAreInlined(t *testing.T) {
	parts := strings.Join([]string{timeLua, plainLua, headLua, bucketLua, warmupLua, framesLua, windowLua, runLua}, "\n")
	comment, text := regexp.MustCompile(`(?m) *--.*$`), regexp.MustCompile(`'[^']*'`)
	code := comment.ReplaceAllString(parts, "")
	values := make(map[string]string)
	for _, m := range constant.FindAllStringSubmatch(code+"\n", -1) {
		if was, known := values[m[1]]; known && was != m[2] {
			t.Errorf("%s is %s and %s", m[1], was, m[2])
		}
		values[m[1]] = m[2]
	}
	if len(values) < 25 {
		t.Errorf("only %d constants: %v", len(values), values)
	}
	for _, quoted := range text.FindAllString(code, -1) {
		for _, name := range word.FindAllString(quoted, -1) {
			if values[name] != "" {
				t.Errorf("%s stands in %s", name, quoted)
			}
		}
	}
	left := text.ReplaceAllString(inlined(code), "''")
	for _, name := range regexp.MustCompile(`\b[A-Z][A-Z_]+\b`).FindAllString(left, -1) {
		if name != "KEYS" && name != "ARGV" {
			t.Errorf("%s is left", name)
		}
	}
}
