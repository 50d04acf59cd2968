package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

func TestModuleRootFromAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "testenv", "files.go")); err != nil {
		t.Errorf("%s is not the module's root: %v", root, err)
	}
}

func TestSharedDataSkipsWhenAbsent(t *testing.T) {
	t.Setenv("CI", "true") // optional even there
	if got := outcome(t, func(tb testing.TB) { SharedData(tb, "no such file") }); got != "skipped" {
		t.Errorf("SharedData without the file: the test was %s, want skipped", got)
	}
}
