package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var binary struct {
	sync.Mutex
	dir  string // set while Main runs the tests
	path string // set once built
	err  error
}

// Binary returns the path of the hotparam command, built from this checkout once
// per test process, with the race detector if the tests have it. The package's
// TestMain must call [Main], which removes the binary at the end.
func Binary(tb testing.TB) string {
	tb.Helper()
	binary.Lock()
	defer binary.Unlock()
	if binary.dir == "" {
		tb.Fatal("testenv: Binary needs func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) } in this package")
	}
	if binary.path == "" && binary.err == nil {
		binary.path, binary.err = build(binary.dir)
	}
	if binary.err != nil {
		tb.Fatalf("testenv: %v", binary.err)
	}
	return binary.path
}

func build(dir string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hotparam")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/hotparam")...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s in %s: %w\n%s", cmd, root, err, output)
	}
	return path, nil
}

// prepareBinary creates the directory for the binary. The returned function removes it.
func prepareBinary() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "hotparam-test-")
	if err != nil {
		return nil, err
	}
	binary.Lock()
	binary.dir = dir
	binary.Unlock()
	return func() { _ = os.RemoveAll(dir) }, nil // a temporary directory, which the system removes in the end
}
