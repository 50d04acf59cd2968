package testenv

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Python returns the path of a Python 3 that has the packages ("kafka-python==3.0.12")
// and no others: a virtual environment in the user's cache, made once by the python3
// of the PATH. Where it cannot be had the test is skipped (see the package).
func Python(tb testing.TB, packages ...string) string {
	tb.Helper()
	dir, err := cached("python-"+strings.Join(packages, "-"), func(work string) error {
		ctx, cancel := context.WithTimeout(tb.Context(), fetchPatience)
		defer cancel()
		if err := runIn(ctx, work, "python3", "-m", "venv", "."); err != nil {
			return err
		}
		pip := []string{"-m", "pip", "install", "-q", "--disable-pip-version-check"}
		return runIn(ctx, work, filepath.Join(work, "bin", "python"), append(pip, packages...)...)
	})
	if err != nil {
		unavailable(tb, fmt.Sprintf("no Python with %q (Debian: apt-get install python3-venv): %v", packages, err))
	}
	return filepath.Join(dir, "bin", "python")
}
