package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const modulePath = "github.com/hotparam/hotparam"

// startDir is read before any test can change it.
var startDir, errStartDir = os.Getwd()

// SharedData returns the path of a large file that is not part of the repository: name below
// shared/data in the checkout's parent directory. If the file is missing, the test is skipped,
// also in CI, since the file is not a component but a bigger sample of data in the repository.
func SharedData(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(Root(tb), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("testenv: optional data %s is not there (%v); the smaller sample in the repository is tested anyway", name, err)
	}
	return path
}

// Root is [ModuleRoot] for tests.
func Root(tb testing.TB) string {
	tb.Helper()
	root, err := ModuleRoot()
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	return root
}

// ReadFile returns the text of a file.
func ReadFile(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	return string(text)
}

// WriteFile writes a file that only this user may read.
func WriteFile(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatalf("testenv: %v", err)
	}
}

// ModuleRoot returns the directory of the main module's go.mod, also in tests of a nested module.
func ModuleRoot() (string, error) {
	if errStartDir != nil {
		return "", errStartDir
	}
	for dir := startDir; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if strings.TrimSpace(first) == "module "+modulePath {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of %s in or above %s", modulePath, startDir)
		}
	}
}
