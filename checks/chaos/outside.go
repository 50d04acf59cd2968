package chaos

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// TB is the part of a test that a run needs.
type TB = testing.TB

// Outside runs f in a program as a test would, until ctx ends. Files are kept in dir. It returns
// nil if f could not continue, and prints the reason on stderr.
func Outside[T any](ctx context.Context, dir string, f func(TB) *T) (result *T) {
	if err := testenv.Outside(ctx, dir, func(tb TB) { result = f(tb) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return result
}
