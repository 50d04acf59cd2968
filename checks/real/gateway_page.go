package real

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Across returns the configuration that a page of docs/gateways gives for a guard on another
// machine. It is the block of code below "## Across machines", with the paths of files. The texts
// in replace alternate between an old text and its replacement.
func Across(tb testing.TB, page string, files testenv.CertificateFiles, replace ...string) string {
	tb.Helper()
	root, err := testenv.ModuleRoot()
	if err != nil {
		tb.Fatalf("real: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "gateways", page))
	if err != nil {
		tb.Fatalf("real: %v", err)
	}
	found := regexp.MustCompile("(?s)\n## Across machines\n.*?\n```\\w*\n(.*?\n)```\n").FindSubmatch(text)
	if found == nil {
		tb.Fatalf("real: docs/gateways/%s has no block below \"Across machines\"", page)
	}
	replace = append(replace,
		"/etc/hotparam/ca.pem", files.CA, "/etc/hotparam/client.pem", files.ClientCert, "/etc/hotparam/client-key.pem", files.ClientKey)
	return strings.NewReplacer(replace...).Replace(string(found[1]))
}
