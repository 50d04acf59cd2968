package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

func TestModuleRootFromAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "internal", "testenv", "files.go")); err != nil {
		t.Errorf("%s is not the module's root: %v", root, err)
	}
}

func TestSharedDataSkipsWhenAbsent(t *testing.T) {
	var skipped bool
	t.Run("absent", func(t *testing.T) {
		t.Cleanup(func() { skipped = t.Skipped() })
		SharedData(t, "no such file")
	})
	if !skipped {
		t.Error("SharedData returned for a file that does not exist")
	}
}
