package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests and removes what [Commands] has built. It fails the run if the tests
// passed but left goroutines behind, other than those that the options excuse. It returns the
// exit code:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M, leaks ...goleak.Option) int {
	dir, err := os.MkdirTemp("", "hotparam-test-")
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory, which the system removes in the end
	commands.dir, commands.built = dir, make(map[string]func() (string, error))
	code := m.Run()
	if code != 0 {
		return code // a failed test may leave goroutines behind, so do not report them
	}
	if err := goleak.Find(append(leaks, redialing)...); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: the tests passed but left goroutines behind: %v\n", err)
		return 1
	}
	return 0
}

// redialing excuses a goroutine of go-redis. A client that could not connect for a while retries
// once a second, so it notices its Close only within a second.
var redialing = goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
