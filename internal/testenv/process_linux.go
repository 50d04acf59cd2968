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

// dieWithParent makes the kernel kill the child when the test process dies, for whatever reason.
// The thread that starts the child must live as long as the child should.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// awaitStopped waits until a process that was sent SIGSTOP has stopped, since kill(2) returns
// before that.
func awaitStopped(ctx context.Context, pid int) error {
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
		case <-time.After(time.Millisecond): // poll, since an event from the kernel would take the child from Wait
		}
	}
}
