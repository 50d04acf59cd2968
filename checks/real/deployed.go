package real

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// ReadDeployed returns the text of a file of deploy/.
func ReadDeployed(tb testing.TB, name string) string {
	tb.Helper()
	return testenv.ReadFile(tb, filepath.Join(testenv.Root(tb), "deploy", filepath.FromSlash(name)))
}

// writeDeployed writes a file of deploy/ with other values into dir and returns its path.
func writeDeployed(tb testing.TB, dir, name string, values map[string]string) (path string) {
	tb.Helper()
	text, err := withValues(ReadDeployed(tb, name), values)
	if err != nil {
		tb.Fatalf("real: deploy/%s %v", name, err)
	}
	path = filepath.Join(dir, filepath.Base(name))
	testenv.WriteFile(tb, path, text)
	return path
}

// withValues returns a configuration with other values for some of its keys, so tests run the
// same files that users get, except for ports and directories. Lines are "key = value" or "key:
// value,". Each key must occur exactly once. Otherwise a file and its tests could diverge.
func withValues(text string, values map[string]string) (string, error) {
	for key, value := range values {
		line := regexp.MustCompile(`(?m)^(\s*` + regexp.QuoteMeta(key) + `(?: =|:) )[^,\n]*(,?)$`)
		if n := len(line.FindAllStringIndex(text, -1)); n != 1 {
			return "", fmt.Errorf("sets %s %d times, want once", key, n)
		}
		text = line.ReplaceAllStringFunc(text, func(found string) string {
			m := line.FindStringSubmatch(found)
			return m[1] + value + m[2]
		})
	}
	return text, nil
}
