// Command testsummary runs "go test -json" and makes its stream readable: one line
// per package as it ends, failures in full, skips with their reason, the slowest
// tests, and as the last line the totals over all modules, "N passed, N failed, N
// skipped", in which each test and each subtest counts.
//
//	testsummary [-C dir]... [go test flags and packages] [-- …]
//
// With several -C, one for each module, the tests of each are run in turn. After a
// "--" comes another run, with other flags. The exit
// code is 0 only if tests ran and everything passed or was skipped: a package that
// does not build, that panics or runs out of time, or that gives no result, counts
// as failed too.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

func run(args []string, stdout io.Writer) int {
	// An interrupt ends go test, not this command: what has run is still summed up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := bufio.NewWriter(stdout)
	s := newSummary(out)
	for more := true; more; {
		one := args
		if end := slices.Index(args, "--"); end >= 0 {
			one, args = args[:end], args[end+1:]
		} else {
			more = false
		}
		dirs, testArgs := parseArgs(one)
		for _, dir := range dirs {
			err := runTests(ctx, dir, testArgs, func(stdout io.Reader) error { return readEvents(stdout, s, out) })
			s.endRun(dir, err)
		}
	}
	ok := s.end()
	if err := out.Flush(); err != nil || !ok {
		return 1
	}
	return 0
}

// parseArgs splits the leading -C flags from what is meant for go test. The flag
// package is of no use here: it would reject the flags of go test.
func parseArgs(args []string) (dirs, rest []string) {
	for len(args) >= 2 && args[0] == "-C" {
		dirs = append(dirs, args[1])
		args = args[2:]
	}
	if dirs == nil {
		dirs = []string{"."}
	}
	return dirs, args
}

// runTests runs go test in the directory and hands its standard output to read. Its
// standard error goes through: it says what the stream does not, such as downloads.
func runTests(ctx context.Context, dir string, args []string, read func(io.Reader) error) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(stdout)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return readErr
}

// readEvents hands each event of the stream to the summary. A line that is no event
// is shown as it is: a tool between go and us may have printed it.
func readEvents(stream io.Reader, s *summary, out *bufio.Writer) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && (json.Unmarshal(line, &e) != nil || e.Action == "") {
			fmt.Fprintf(out, "%s", line)
		} else {
			s.add(e)
		}
		if flushErr := out.Flush(); flushErr != nil {
			return flushErr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}
