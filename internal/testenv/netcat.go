package testenv

import (
	"os/exec"
	"testing"
)

// Netcat returns the path of nc. Without one the test is skipped (see the package).
func Netcat(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("nc")
	if err != nil {
		unavailable(tb, "no nc in PATH: install it (Debian: apt-get install netcat-openbsd)")
	}
	return path
}
