package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
)

const (
	Patience = 30 * time.Second // time to get ready, or to end on its own
	Grace    = 10 * time.Second // time from SIGTERM to SIGKILL
)

// Process is a child process of a test. It is stopped when the test ends, and its output is
// logged if the test failed. Its methods are safe for concurrent use. However, methods that can
// fail the test (WaitFor, Wait, Signal) must be called from the test's own goroutine, like
// [testing.T.FailNow].
type Process struct {
	tb             testing.TB
	cmd            *exec.Cmd
	stdout, stderr LogBuffer
	exited         chan struct{}
}

// Start runs the command as a child of the test. The command must not have been started. Start
// sets its Stdout and Stderr.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{tb: tb, cmd: cmd, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	// A grandchild that keeps the pipes open must not block Wait.
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)

	started := make(chan error)
	go func() {
		defer close(p.exited)
		// The kernel considers the parent dead when the thread that started the child ends. So
		// this goroutine holds the thread until the child has ended. Otherwise another goroutine
		// could run on the thread, lock it, and end it by returning.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the outcome is in cmd.ProcessState
		}
	}()
	if err := <-started; err != nil {
		tb.Fatalf("testenv: start %s: %v", cmd.Path, err)
	}
	tb.Cleanup(func() {
		p.Stop()
		if tb.Failed() {
			tb.Logf("testenv: %s", p.Describe())
		}
	})
	return p
}

// WaitFor waits until a whole line of the child's stdout or stderr matches the pattern and
// returns the match with its groups. It fails the test if the child exits or 30 s pass without
// such a line.
func (p *Process) WaitFor(pattern string) []string {
	p.tb.Helper()
	match, err := p.Await(p.tb.Context(), regexp.MustCompile(pattern))
	if err != nil {
		p.tb.Fatalf("testenv: %v; %s", err, p.Describe())
	}
	return match
}

// Await waits until a complete line of the output matches the pattern and returns the match with
// its groups.
func (p *Process) Await(ctx context.Context, pattern *regexp.Regexp) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	ended := false
	for {
		match, moreOut := p.stdout.findLine(pattern)
		var moreErr <-chan struct{}
		if match == nil {
			match, moreErr = p.stderr.findLine(pattern)
		}
		switch {
		case match != nil:
			return match, nil
		case ended:
			return nil, fmt.Errorf("the process exited without a line that matches %q", pattern)
		}
		select {
		case <-moreOut:
		case <-moreErr:
		case <-p.exited:
			ended = true // it may have written the line last
		case <-ctx.Done():
			return nil, fmt.Errorf("no line that matches %q: %w", pattern, ctx.Err())
		}
	}
}

// Wait waits until the child has ended on its own and returns its exit code, or -1 if a signal
// ended it. It fails the test after 30 s.
func (p *Process) Wait() int {
	p.tb.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(Patience):
		p.tb.Fatalf("testenv: still running after %v: %s", Patience, p.Describe())
		return -1
	}
}

// Exited returns a channel that is closed when the child has ended and all its output is
// captured.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal sends a signal to the child. It fails the test if the child has ended.
func (p *Process) Signal(sig os.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.tb.Fatalf("testenv: send %v: %v; %s", sig, err, p.Describe())
	}
}

// Pause stops the child (SIGSTOP) and returns when it has stopped.
func (p *Process) Pause() {
	p.tb.Helper()
	p.Signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(p.tb.Context(), Patience)
	defer cancel()
	if err := awaitStopped(ctx, p.PID()); err != nil {
		p.tb.Fatalf("testenv: %v", err)
	}
}

// Resume continues a paused child.
func (p *Process) Resume() {
	p.tb.Helper()
	p.Signal(syscall.SIGCONT)
}

// Stop asks the child to end (SIGTERM), kills it after 10 s (SIGKILL), and returns its exit code,
// or -1 if a signal ended it. It may be called again.
func (p *Process) Stop() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has already ended
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a stopped process gets SIGTERM only now
	select {
	case <-p.exited:
	case <-time.After(Grace):
		p.tb.Logf("testenv: pid %d ignored SIGTERM for %v: killed", p.PID(), Grace)
		return p.Kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

// Kill kills the child (SIGKILL), waits until it has ended, and returns its exit code, or -1 if a
// signal ended it. It may be called again.
func (p *Process) Kill() int {
	_ = p.cmd.Process.Kill() // fails only if it has already ended
	<-p.exited
	return p.cmd.ProcessState.ExitCode()
}

// PID returns the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stdout returns the child's standard output so far.
func (p *Process) Stdout() string { return p.stdout.String() }

// Stderr returns the child's standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// Describe describes the child's command, its state and its output.
func (p *Process) Describe() string {
	state := "running"
	if p.HasExited() {
		state = p.cmd.ProcessState.String()
	}
	return fmt.Sprintf("%s (pid %d, %s)\nstdout:\n%s\nstderr:\n%s", p.cmd, p.PID(), state, p.Stdout(), p.Stderr())
}

// HasExited reports whether the child has ended.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
