// Package testenv gives tests real components: a real Redis, the real binary, real child
// processes and free ports. Package real in checks has the other servers. Only tests import this
// package.
//
// Everything that it starts belongs to the calling test. It is ready when the call returns and is
// stopped when the test ends. Its output is logged if the test failed. On Linux the kernel stops
// it even if the test process is killed. Nothing is shared: each call starts another server, so
// tests may run in parallel.
//
// If a real component is unavailable, the test is skipped with a hint at the package to install.
// With CI=true or HOTPARAM_REQUIRE_REAL=1 it fails instead, so that a green run has not skipped
// anything.
//
// The package needs a Unix: it sends SIGTERM, SIGSTOP and SIGCONT.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// Unavailable ends the test because a real component is unavailable. It skips the test, or fails
// it if CI or HOTPARAM_REQUIRE_REAL is set.
func Unavailable(tb testing.TB, why string) {
	tb.Helper()
	if isSet("CI") || isSet("HOTPARAM_REQUIRE_REAL") {
		tb.Fatalf("testenv: %s (a failure, not a skip, because CI or HOTPARAM_REQUIRE_REAL is set)", why)
	}
	tb.Skipf("testenv: %s", why)
}

func isSet(variable string) bool {
	on, err := strconv.ParseBool(os.Getenv(variable))
	return err == nil && on
}

// Program returns the path of the first of these programs that is in PATH. Without any the test
// is skipped with a hint at their Debian package.
func Program(tb testing.TB, debian string, programs ...string) string {
	tb.Helper()
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	Unavailable(tb, fmt.Sprintf("no %s in PATH: install it (Debian: apt-get install %s)", programs[0], debian))
	return ""
}
