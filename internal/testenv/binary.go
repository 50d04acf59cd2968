package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// commands holds the commands that were built for this test process.
var commands struct {
	dir string // set while Main runs the tests

	mu    sync.Mutex
	built map[string]func() (dir string, err error) // by flags and packages
}

// Binary returns the path of the hotparam command, with the race detector if the tests have it;
// see [Commands].
func Binary(tb testing.TB) string {
	tb.Helper()
	var flags []string
	if raceEnabled {
		flags = append(flags, "-race")
	}
	return filepath.Join(Commands(tb, flags, "./cmd/hotparam"), "hotparam")
}

// Commands returns a directory with the commands of the packages, which are paths from the
// module's root. They are built from this checkout once per test process. The package's TestMain
// must call [Main], which removes them at the end.
func Commands(tb testing.TB, flags []string, packages ...string) string {
	tb.Helper()
	if commands.dir == "" {
		tb.Fatal("testenv: Commands needs func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) } in this package")
	}
	args := append(flags[:len(flags):len(flags)], packages...)
	key := strings.Join(args, " ")
	commands.mu.Lock()
	build := commands.built[key]
	if build == nil {
		build = sync.OnceValues(func() (string, error) { return buildCommands(args) })
		commands.built[key] = build
	}
	commands.mu.Unlock()
	dir, err := build()
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	return dir
}

func buildCommands(args []string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(commands.dir, "")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", append([]string{"build", "-o", dir}, args...)...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s in %s: %w\n%s", cmd, root, err, output)
	}
	return dir, nil
}
