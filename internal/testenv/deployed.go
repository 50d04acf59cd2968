package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// deployed returns a configuration file of deploy/ with other values for some of its keys, so
// tests run the same files that users get, except for ports and directories. Lines are "key =
// value" or "key: value,". Each key must occur exactly once. Otherwise a file and its tests could
// diverge.
func deployed(name string, values map[string]string) ([]byte, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	for key, value := range values {
		line := regexp.MustCompile(`(?m)^(\s*` + regexp.QuoteMeta(key) + `(?: =|:) )[^,\n]*(,?)$`)
		if n := len(line.FindAllIndex(text, -1)); n != 1 {
			return nil, fmt.Errorf("deploy/%s sets %s %d times, want once", name, key, n)
		}
		text = line.ReplaceAllFunc(text, func(found []byte) []byte {
			m := line.FindSubmatch(found)
			return append(append(append([]byte(nil), m[1]...), value...), m[2]...)
		})
	}
	return text, nil
}

// WriteDeployed writes a file of deploy/ with other values into dir and returns its path.
func WriteDeployed(dir, name string, values map[string]string) (string, error) {
	text, err := deployed(name, values)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(name))
	return path, os.WriteFile(path, text, 0o600)
}

// ReadDeployed returns the text of a file of deploy/.
func ReadDeployed(tb testing.TB, name string) string {
	tb.Helper()
	root, err := ModuleRoot()
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", filepath.FromSlash(name)))
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	return string(text)
}
