// Command testsummary runs "go test -json" and makes its stream readable: one line
// per package as it ends, failures in full, skips with their reason, the slowest
// tests, and as the last line the totals over all modules, "N passed, N failed, N
// skipped", in which each test and each subtest counts.
//
//	testsummary [-C dir]... [go test flags and packages] [-- …] [--beside …]
//
// With several -C, one for each module, the tests of each are run in turn. After a
// "--" comes another run, with other flags. After "--beside" comes one that the runs
// after it do not wait for: it takes, at the lowest priority, what they leave of the
// processors. Several such take turns. The exit code is 0 only if tests ran and
// everything passed or was skipped: a package that does not build, that panics or
// runs out of time, or that gives no result, counts as failed too.
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
	"sync"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

func run(args []string, stdout io.Writer) int {
	// An interrupt ends go test, not this command: what has run is still summed up.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := &output{to: bufio.NewWriter(stdout)}
	total := newSummary(out.to)
	test := func(r goTest) {
		s := newSummary(out.to) // its own: two runs may have a package in common
		for _, dir := range r.dirs {
			err := runTests(ctx, dir, r, func(stdout io.Reader) error { return readEvents(stdout, s, out) })
			out.locked(func() { s.endRun(dir, err) })
		}
		out.locked(func() { total.join(s) })
	}
	beside := make(chan struct{}) // closed when the last run beside others has ended
	close(beside)
	for _, r := range parseArgs(args) {
		if !r.beside {
			test(r)
			continue
		}
		before, done := beside, make(chan struct{})
		beside = done
		go func() {
			defer close(done)
			<-before
			test(r)
		}()
	}
	<-beside
	ok := total.end()
	if err := out.to.Flush(); err != nil || !ok {
		return 1
	}
	return 0
}

// output is what the runs write to, whole events at a time.
type output struct {
	mu sync.Mutex
	to *bufio.Writer
}

// locked lets f write, and shows at once what it wrote. An error stays until the end.
func (o *output) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	_ = o.to.Flush()
}

// goTest is a run of go test.
type goTest struct {
	dirs, args []string
	beside     bool // what comes after it does not wait for it
}

// parseArgs splits the arguments into runs, and the leading -C flags of each from what is
// meant for go test. The flag package is of no use here: it would reject the flags of go test.
func parseArgs(args []string) (runs []goTest) {
	var r goTest
	for {
		end := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || arg == "--beside" })
		one := args
		if end >= 0 {
			one = args[:end]
		}
		for len(one) >= 2 && one[0] == "-C" {
			r.dirs = append(r.dirs, one[1])
			one = one[2:]
		}
		if r.dirs == nil {
			r.dirs = []string{"."}
		}
		r.args = one
		runs = append(runs, r)
		if end < 0 {
			return runs
		}
		r = goTest{beside: args[end] == "--beside"}
		args = args[end+1:]
	}
}

// runTests runs go test in the directory and hands its standard output to read. Its
// standard error goes through: it says what the stream does not, such as downloads.
func runTests(ctx context.Context, dir string, r goTest, read func(io.Reader) error) error {
	command := append([]string{"go", "test", "-json"}, r.args...)
	if r.beside {
		command = append([]string{"nice", "-n", "19"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
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
func readEvents(stream io.Reader, s *summary, out *output) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		out.locked(func() {
			if len(line) > 0 && (json.Unmarshal(line, &e) != nil || e.Action == "") {
				fmt.Fprintf(out.to, "%s", line)
			} else {
				s.add(e)
			}
		})
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}
