package testenv

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// DocumentedRights returns the words of a user's ACL SETUSER line in docs/REDIS.md: the commands
// separately, and the rest.
func DocumentedRights(tb testing.TB, user string) (words []any, commands []string) {
	tb.Helper()
	text := ReadFile(tb, filepath.Join(Root(tb), "docs", "REDIS.md"))
	line := regexp.MustCompile(`(?m)^ACL SETUSER ` + user + ` .*$`).FindString(text)
	if line == "" {
		tb.Fatalf("docs/REDIS.md has no line ACL SETUSER %s", user)
	}
	for word := range strings.FieldsSeq(line) {
		if strings.HasPrefix(word, "+") {
			commands = append(commands, word)
		} else {
			words = append(words, word)
		}
	}
	return words, commands
}
