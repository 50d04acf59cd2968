package gateways

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// between returns the first part of text that begins with from and ends before the next occurrence of
// to.
func between(text, from, to string) (string, error) {
	begin := strings.Index(text, from)
	if begin < 0 {
		return "", fmt.Errorf("no %q", from)
	}
	length := strings.Index(text[begin:], to)
	if length < 0 {
		return "", fmt.Errorf("no %q after %q", to, from)
	}
	return text[begin : begin+length], nil
}

// deployedBetween returns the part of a file in deploy/gateways between two texts, for testenv to
// replace.
func deployedBetween(tb testing.TB, file, from, to string) string {
	tb.Helper()
	part, err := between(real.ReadDeployed(tb, "gateways/"+file), from, to)
	if err != nil {
		tb.Fatalf("deploy/gateways/%s: %v", file, err)
	}
	return part
}

// withoutLines returns text up to the line stop, which it leaves out too, without the lines that
// begin with one of prefixes after their indentation.
func withoutLines(text, stop string, prefixes ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == stop {
			break
		}
		begins := func(prefix string) bool { return strings.HasPrefix(strings.TrimSpace(line), prefix) }
		if !slices.ContainsFunc(prefixes, begins) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// replaceOnce returns text with old replaced by replacement. It fails tb unless text contains old
// exactly once.
func replaceOnce(tb testing.TB, text, old, replacement string) string {
	tb.Helper()
	if n := strings.Count(text, old); n != 1 {
		tb.Fatalf("%q occurs %d times, want once", old, n)
	}
	return strings.Replace(text, old, replacement, 1)
}

// writeConfig writes a gateway's configuration to a directory of its own and returns its path.
func writeConfig(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "gateway.cfg")
	testenv.WriteFile(tb, path, text)
	return path
}
