// Package testenv gives tests the real thing: a real Redis, the real binary, real child
// processes and free ports. Package real in checks has the other servers. Only tests import
// it.
//
// Everything that it starts belongs to the test that asked for it: it is ready
// when the call returns, it is stopped when that test ends, its output is logged
// if the test failed, and on Linux the kernel stops it even when the test process
// is killed. A server that is asked for twice is started twice: nothing is shared,
// so tests may run in parallel.
//
// A real component that cannot be had skips the test and says what to install.
// With CI=true or HOTPARAM_REQUIRE_REAL=1 it fails the test instead, so that no
// green run has left out what it was meant to show.
//
// The package needs a Unix: it sends SIGTERM, SIGSTOP and SIGCONT.
package testenv

import (
	"os"
	"strconv"
	"testing"
)

// unavailable ends the test because a real component cannot be had: as a skip, or
// as a failure where the run was told to leave nothing out.
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
