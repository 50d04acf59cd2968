package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs a package's tests, removes what [Binary] built, and fails the run if
// the tests passed but left goroutines behind, other than those that the options
// excuse. It returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M, leaks ...goleak.Option) int {
	remove, err := prepareBinary()
	if err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		return 1
	}
	defer remove()
	code := m.Run()
	if code != 0 {
		return code // a failed test may well leave goroutines behind: not worth telling
	}
	if err := goleak.Find(append(leaks, redialing)...); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: the tests passed but left goroutines behind: %v\n", err)
		return 1
	}
	return 0
}

// redialing excuses a goroutine of go-redis: a client that could not connect for a while tries
// once a second, and learns that it is closed within a second of its Close.
var redialing = goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
