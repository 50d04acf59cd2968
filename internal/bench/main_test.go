package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/internal/testenv"
)

// TestMain also serves as the program whose parts the tests start.
func TestMain(m *testing.M) {
	logging.Disable() // as the program does
	if len(os.Args) == 3 && os.Args[1] == "part" {
		if err := RunPart(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

func partsOfTest() []string { return []string{os.Args[0], "part"} }

func mustBeEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}
