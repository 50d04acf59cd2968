package real

import (
	"errors"
	"os"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// outcome runs f and returns how a test would have ended: "passed", "skipped" or "failed".
func outcome(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	switch err := testenv.Outside(t.Context(), t.TempDir(), f); {
	case err == nil:
		return "passed"
	case errors.Is(err, testenv.ErrSkipped):
		return "skipped"
	default:
		return "failed"
	}
}
