package real

import (
	"os/exec"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Netcat returns the path of nc. Without one the test is skipped (see the package).
func Netcat(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("nc")
	if err != nil {
		testenv.Unavailable(tb, "no nc in PATH: install it (Debian: apt-get install netcat-openbsd)")
	}
	return path
}
