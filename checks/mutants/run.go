package mutants

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hotparam/hotparam/checks/overlay"
)

// Outcome is the result of a fault.
type Outcome struct {
	Fault
	FoundBy []string // the tests that failed; empty if the fault survives
	Took    time.Duration
}

// timeout bounds one run of the tests. A fault that makes a test hang is found by it.
const timeout = time.Minute

// Runner runs checks. It is safe for concurrent use.
type Runner struct {
	root string

	mu     sync.Mutex
	checks map[string]func() error // by name of a check: runs it once without a fault
}

// NewRunner returns a runner for the module of the working directory.
func NewRunner() (*Runner, error) {
	root, err := overlay.Root()
	return &Runner{root: root, checks: make(map[string]func() error)}, err
}

// Run plants a fault and runs its check. It is an error if the check fails without the fault, if
// the fault's text is missing, or if the code does not compile. The fault was not tested then.
func (r *Runner) Run(ctx context.Context, f Fault) (Outcome, error) {
	o := Outcome{Fault: f}
	if err := r.passes(ctx, f); err != nil {
		return o, fmt.Errorf("%s: %w", f.Name, err)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return o, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory, which the system removes in the end
	changed, err := overlay.Write(dir, r.root, []overlay.Edit{f.edit()})
	if err != nil {
		return o, fmt.Errorf("%s: %w", f.Name, err)
	}
	began := time.Now()
	o.FoundBy, err = r.test(ctx, f, "-overlay", changed)
	o.Took = time.Since(began)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.Name, err)
	}
	return o, err
}

// passes runs a fault's check without the fault, once for all faults that share the check.
func (r *Runner) passes(ctx context.Context, f Fault) error {
	name := f.pkg() + " " + f.Test
	r.mu.Lock()
	check := r.checks[name]
	if check == nil {
		check = sync.OnceValue(func() error {
			failed, err := r.test(ctx, f)
			if err == nil && len(failed) > 0 {
				err = fmt.Errorf("%s fails without the fault: %s", name, strings.Join(failed, ", "))
			}
			return err
		})
		r.checks[name] = check
	}
	r.mu.Unlock()
	return check()
}

// test runs a fault's check and returns the tests that failed.
func (r *Runner) test(ctx context.Context, f Fault, flags ...string) (failed []string, err error) {
	args := append([]string{"test", "-json", "-vet=off", "-failfast", "-timeout", timeout.String()}, flags...)
	if f.Test != "" {
		args = append(args, "-run", "^("+f.Test+")$")
	}
	args = append(args, "./"+f.pkg())
	random, err := r.isRandom(f.pkg())
	if err != nil {
		return nil, err
	}
	if random { // makes runs repeatable, writes nothing into the checkout, and spends no time on a smaller example
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ns")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, runErr := cmd.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); runErr != nil && !errors.As(runErr, &exit) {
		return nil, runErr
	}
	result, err := readEvents(output)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w\n%s", err, &stderr)
	case len(result.failed) > 0:
		return result.failed, nil
	case runErr != nil && len(result.unfinished) > 0: // the fault ended the process
		return result.unfinished, nil
	case runErr != nil:
		return nil, fmt.Errorf("%w, and no test failed\n%s%s", runErr, &stderr, output)
	case !result.ran:
		return nil, fmt.Errorf("package %s has no test %q", f.pkg(), f.Test)
	}
	return nil, nil
}

// isRandom reports whether a package has tests with rapid, which accept its flags.
func (r *Runner) isRandom(pkg string) (bool, error) {
	p, err := build.ImportDir(filepath.Join(r.root, filepath.FromSlash(pkg)), 0)
	if err != nil {
		return false, err
	}
	return slices.Contains(slices.Concat(p.TestImports, p.XTestImports), "pgregory.net/rapid"), nil
}

// testResult is the outcome of a package's tests.
type testResult struct {
	failed, unfinished []string // names without subtests
	ran                bool     // a test ran
}

// readEvents parses the output of go test -json. It is an error if something did not compile.
func readEvents(output []byte) (r testResult, err error) {
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, 16<<20)
	var built strings.Builder
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // a line of the go command itself
		}
		test, _, sub := strings.Cut(e.Test, "/")
		switch e.Action {
		case "build-output":
			built.WriteString(e.Output)
		case "build-fail":
			err = fmt.Errorf("it does not compile:\n%s", built.String())
		case "run":
			r.ran = true
			if !sub {
				r.unfinished = append(r.unfinished, test)
			}
		case "fail":
			if test != "" {
				r.failed = append(r.failed, test)
			}
			fallthrough
		case "pass", "skip":
			if !sub {
				r.unfinished = slices.DeleteFunc(r.unfinished, func(name string) bool { return name == test })
			}
		}
	}
	slices.Sort(r.failed)
	r.failed = slices.Compact(r.failed)
	return r, cmp.Or(err, lines.Err())
}

// pkg returns the package whose tests are run, as a path from the module's root.
func (f *Fault) pkg() string { return cmp.Or(f.Package, path.Dir(f.File)) }

func (f *Fault) edit() overlay.Edit { return overlay.Edit{File: f.File, Old: f.Old, New: f.New} }
