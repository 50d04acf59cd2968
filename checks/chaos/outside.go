package chaos

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// TB is what a run needs of a test.
type TB = testing.TB

// Outside runs f as a test would, in a program that is none, until ctx ends. Files are
// kept in dir. It returns nil if f could not go on, after it was told why on stderr.
func Outside[T any](ctx context.Context, dir string, f func(TB) *T) (result *T) {
	if err := testenv.Outside(ctx, dir, func(tb TB) { result = f(tb) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return result
}
