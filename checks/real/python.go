package real

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Python returns the path of a Python 3 that has the packages ("kafka-python==3.0.12") and no
// others. It is in a virtual environment in the user's cache, created once by the python3 of the
// PATH. Without packages, Python returns the python3 of the PATH itself. If there is none, the
// test is skipped (see the package).
func Python(tb testing.TB, packages ...string) string {
	tb.Helper()
	if len(packages) == 0 {
		path, err := exec.LookPath("python3")
		if err != nil {
			testenv.Unavailable(tb, fmt.Sprintf("no Python (Debian: apt-get install python3): %v", err))
		}
		return path
	}
	dir, err := pythonPackages(tb.Context(), packages...)
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no Python with %q (Debian: apt-get install python3-venv): %v", packages, err))
	}
	return filepath.Join(dir, "bin", "python")
}
