package testenv

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestProcessOutputAndExitCode(t *testing.T) {
	p := Start(t, exec.Command("sh", "-c", "echo listening on 127.0.0.1:8125; echo oops >&2; exit 3"))
	if got := p.WaitFor(`^listening on (\S+):(\d+)$`); got[1] != "127.0.0.1" || got[2] != "8125" {
		t.Errorf("groups %q", got)
	}
	p.WaitFor(`^oops$`)
	if code := p.Wait(); code != 3 {
		t.Errorf("Wait() = %d, want 3", code)
	}
	if p.Stdout() != "listening on 127.0.0.1:8125\n" || p.Stderr() != "oops\n" {
		t.Errorf("stdout %q, stderr %q", p.Stdout(), p.Stderr())
	}
	if code := p.Stop(); code != 3 {
		t.Errorf("Stop() after the end = %d, want 3", code)
	}
}

func TestProcessThatEndsWithoutTheLine(t *testing.T) {
	p := Start(t, exec.Command("sh", "-c", "printf 'half a li'"))
	if _, err := p.Await(t.Context(), regexp.MustCompile(`li`)); err == nil {
		t.Error("a line without an end was taken for a whole one")
	}
}

func TestProcessStopLetsTheChildFinish(t *testing.T) {
	p := Start(t, exec.Command("sh", "-c", `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done`))
	p.WaitFor(`^ready$`)
	if code := p.Stop(); code != 7 {
		t.Errorf("Stop() = %d, want 7", code)
	}
	if !strings.Contains(p.Stdout(), "bye") {
		t.Errorf("stdout %q, want the last word too", p.Stdout())
	}
}

func TestProcessKill(t *testing.T) {
	p := Start(t, exec.Command("sh", "-c", `trap '' TERM; echo ready; while :; do sleep 0.01; done`))
	p.WaitFor(`^ready$`)
	if code := p.Kill(); code != -1 {
		t.Errorf("Kill() = %d, want -1", code)
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v, want SIGKILL", p.cmd.ProcessState)
	}
}

func TestProcessIsStoppedAtTheEndOfItsTest(t *testing.T) {
	var p *Process
	t.Run("owner", func(t *testing.T) { p = Start(t, exec.Command("sleep", "300")) })
	select {
	case <-p.Exited():
	default:
		t.Error("still running")
	}
}

// A child must not outlive a test process that is killed, and must not die before it, when the Go
// runtime ends one of its threads. This test starts itself as that test process. Both hold one
// end of a pipe, and the other end closes with the last of them.
func TestChildDiesWithKilledParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can tie a child's life to its parent's")
	}
	const child = "HOTPARAM_TESTENV_CHILD"
	if os.Getenv(child) == "1" {
		beKilledParent(t)
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.ExtraFiles = []*os.File{w}
	parent := Start(t, cmd)
	parent.WaitFor(`^child survived$`)
	w.Close()
	parent.Kill()
	if err := r.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child still holds the pipe: %v", err)
	}
}

func beKilledParent(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read word; echo child $word; exec sleep 300")
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "pipe")}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := Start(t, cmd)
	var threads sync.WaitGroup
	for range 50 {
		threads.Go(runtime.LockOSThread) // the thread ends with the goroutine
	}
	threads.Wait()
	if _, err := io.WriteString(stdin, "survived\n"); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(p.WaitFor(`^child survived$`)[0] + "\n")
	<-p.Exited()
}
