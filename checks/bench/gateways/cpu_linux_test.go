package gateways

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// The processor time read of another process is the one that the kernel reports after its exit.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh in PATH")
	}
	cmd := exec.CommandContext(t.Context(), sh, "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo done; read end; true")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	took, err := processorTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if all := time.Duration(usage.Utime.Nano() + usage.Stime.Nano()); took > all+time.Millisecond || took < all/2 || took == 0 {
		t.Errorf("%v, at its end %v", took, all)
	}
	if _, err := processorTime(cmd.Process.Pid); err == nil {
		t.Error("no error of a process that has ended")
	}
	if _, err := processorTime(os.Getpid()); err != nil {
		t.Error(err)
	}
}
