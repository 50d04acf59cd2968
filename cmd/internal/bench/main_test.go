package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/hotkeys"
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

// leavesNothing checks that a measurement has left no key in a Redis that was there.
func leavesNothing(t *testing.T, server *testenv.RedisServer) {
	t.Helper()
	client, err := hotkeys.NewClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if keys, err := client.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("it leaves %q, %v", keys, err)
	}
}
