package chaos

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
)

// TB is what a run needs of a test.
type TB = testing.TB

// Outside runs f as a test would, in a program that is none, until ctx ends. Files are
// kept in dir. It returns nil if f could not go on, after it was told why on stderr.
func Outside[T any](ctx context.Context, dir string, f func(TB) *T) (result *T) {
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		result = f(&outside{ctx: ctx, dir: dir})
	}()
	<-done
	return result
}

// outside is the part of a testing.TB that testenv uses.
type outside struct {
	testing.TB // nil: methods that are not defined here panic
	ctx        context.Context
	dir        string
}

func (o *outside) Helper()                  {}
func (o *outside) Context() context.Context { return o.ctx }
func (o *outside) Name() string             { return "chaos" }
func (o *outside) Failed() bool             { return false }

func (o *outside) TempDir() string {
	dir, err := os.MkdirTemp(o.dir, "")
	if err != nil {
		o.Fatal(err)
	}
	return dir
}

func (o *outside) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (o *outside) Errorf(format string, args ...any) { o.Logf(format, args...) }
func (o *outside) Error(args ...any)                 { fmt.Fprintln(os.Stderr, args...) }

func (o *outside) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	runtime.Goexit()
}

func (o *outside) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }
func (o *outside) Skipf(format string, args ...any)  { o.Fatal(fmt.Sprintf(format, args...)) }
func (o *outside) Skip(args ...any)                  { o.Fatal(args...) }
