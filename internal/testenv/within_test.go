package testenv

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fatal is a test that records how it failed.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f)
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		took := Within(t, time.Second, "half a second", func() bool { return time.Since(begun) >= 500*time.Millisecond })
		if took < 500*time.Millisecond || took > 520*time.Millisecond {
			t.Errorf("it took %v, want half a second and at most a poll", took)
		}
		f := new(fatal)
		func() {
			defer func() { _ = recover() }()
			Within(f, time.Second, "the end", func() bool { return false }, "state", func() any { return 7 })
		}()
		if !strings.HasPrefix(f.text, "not within 1s: the end") || !strings.HasSuffix(f.text, "\nstate\n7") {
			t.Errorf("it failed with %q", f.text)
		}
	})
}
