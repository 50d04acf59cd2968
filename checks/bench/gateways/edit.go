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

// between returns the first part of text that starts with from, up to the next to.
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

// withoutLines returns text without the lines that begin, after their indentation, with one of the
// prefixes, and without everything after the line end.
func withoutLines(text, end string, beginnings ...string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == end {
			break
		}
		begins := func(beginning string) bool { return strings.HasPrefix(strings.TrimSpace(line), beginning) }
		if !slices.ContainsFunc(beginnings, begins) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// replaceOnce returns text with old replaced. It is an error if text does not contain old exactly
// once.
func replaceOnce(tb testing.TB, text, old, now string) string {
	tb.Helper()
	if n := strings.Count(text, old); n != 1 {
		tb.Fatalf("%d times %q, want once", n, old)
	}
	return strings.Replace(text, old, now, 1)
}

// write writes a file in a directory of its own and returns its path.
func write(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "gateway.cfg")
	testenv.WriteFile(tb, path, text)
	return path
}
