package interop

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// testRules returns the document's rules.
func testRules(t *testing.T) string {
	t.Helper()
	return blocks(t, "yaml")[0]
}

// hotAt returns the document's rules with a term hot at so many searches, however slow the
// machine.
func hotAt(t *testing.T, searches int) string {
	t.Helper()
	text := testRules(t)
	low := strings.Replace(text, "hot: 200/s", fmt.Sprintf("hot: %d/5m", searches), 1)
	if low == text {
		t.Fatal("docs/PRODUCERS.md has no rule with hot: 200/s")
	}
	return low
}

func writeRules(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	testenv.WriteFile(t, path, text)
	return path
}
