package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Outside runs f in a program as a test would. Directories of f are created in dir. When f
// returns, its cleanup functions are called. The error holds the failures and the reason why f
// could not continue. It is [ErrSkipped] if f was skipped, for example without a real server that
// it needs.
func Outside(ctx context.Context, dir string, f func(testing.TB)) error {
	o := &outside{ctx: ctx, dir: dir}
	o.callInGoroutine(func() { f(o) })
	for {
		o.mu.Lock()
		if len(o.cleanups) == 0 {
			o.mu.Unlock()
			break
		}
		last := o.cleanups[len(o.cleanups)-1]
		o.cleanups = o.cleanups[:len(o.cleanups)-1]
		o.mu.Unlock()
		o.callInGoroutine(last)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return errors.Join(slices.Concat(o.errs, o.skipped)...)
}

// ErrSkipped is returned by [Outside] if f was skipped.
var ErrSkipped = errors.New("skipped")

// outside is the part of a testing.TB that this package uses.
type outside struct {
	testing.TB // nil, so methods that are not defined here panic
	ctx        context.Context
	dir        string

	mu            sync.Mutex
	errs, skipped []error
	cleanups      []func()
}

// callInGoroutine calls f in a goroutine of its own, which FailNow can end.
func (o *outside) callInGoroutine(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (o *outside) add(to *[]error, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*to = append(*to, err)
}

func (o *outside) Helper()                  {}
func (o *outside) Context() context.Context { return o.ctx }
func (o *outside) Name() string             { return "outside" }

// Failed returns false once ctx has ended, since the output of the processes does not explain
// that failure.
func (o *outside) Failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.errs) > 0 && o.ctx.Err() == nil
}

func (o *outside) Cleanup(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cleanups = append(o.cleanups, f)
}

func (o *outside) TempDir() string {
	dir, err := os.MkdirTemp(o.dir, "")
	if err != nil {
		o.Fatal(err)
	}
	return dir
}

func (o *outside) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (o *outside) Errorf(format string, args ...any) { o.add(&o.errs, fmt.Errorf(format, args...)) }
func (o *outside) Error(args ...any)                 { o.add(&o.errs, errors.New(line(args))) }

func (o *outside) Fatal(args ...any) {
	o.Error(args...)
	runtime.Goexit()
}

func (o *outside) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

func (o *outside) Skip(args ...any) {
	o.add(&o.skipped, fmt.Errorf("%w: %s", ErrSkipped, line(args)))
	runtime.Goexit()
}

func (o *outside) Skipf(format string, args ...any) { o.Skip(fmt.Sprintf(format, args...)) }

func line(args []any) string { return strings.TrimSpace(fmt.Sprintln(args...)) }
