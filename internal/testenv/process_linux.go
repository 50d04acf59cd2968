package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// dieWithParent has the kernel kill the child when the test process dies, however
// it dies. The thread that starts the child must live as long as the child should.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// awaitStopped waits until a process to which SIGSTOP was sent has come to a stop:
// kill(2) returns before that.
func AwaitStopped(ctx context.Context, pid int) error {
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return fmt.Errorf("read the state of process %d: %w", pid, err)
		}
		// "pid (command) state …"; the command may itself contain parentheses.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 0 && string(fields[0]) == "T" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d did not stop: %w", pid, ctx.Err())
		case <-time.After(time.Millisecond): // the kernel gives no event that leaves the child to Wait
		}
	}
}
