package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// commandVariable makes this test binary the command, so that no other binary is linked.
const commandVariable = "HOTPARAM_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		return
	}
	os.Exit(testenv.Main(m))
}

// asProcess returns the command as a process of its own.
func asProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(cmd.Environ(), commandVariable+"=1")
	return cmd
}
