package filewatch

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// testEvery keeps the tests of real files quick.
const testEvery = 10 * time.Millisecond

// soon bounds the wait for a report of Run.
const soon = 10 * time.Second

// follower receives what Run reports.
type follower struct {
	t       *testing.T
	changes chan string
	access  chan error
}

// follow runs Run for a file until the test ends.
func follow(t *testing.T, path, known string) *follower {
	t.Helper()
	f := &follower{t, make(chan string, 100), make(chan error, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		Run(ctx, Config{
			Path: path, Known: []byte(known), Every: testEvery, MaxSize: 64,
			OnChange: func(data []byte) { f.changes <- string(data) },
			OnAccess: func(err error) { f.access <- err },
		})
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		select {
		case data := <-f.changes:
			t.Errorf("one more change: %q", data)
		case err := <-f.access:
			t.Errorf("one more report: %v", err)
		default:
		}
	})
	return f
}

func (f *follower) wantChange(want string) {
	f.t.Helper()
	if got := f.change(want); got != want {
		f.t.Fatalf("changed to %q, want %q", got, want)
	}
}

// change returns the next change.
func (f *follower) change(want string) string {
	f.t.Helper()
	select {
	case got := <-f.changes:
		return got
	case <-time.After(soon):
		f.t.Fatalf("no change to %q was reported", want)
		return ""
	}
}

func (f *follower) wantAccess(want error) {
	f.t.Helper()
	select {
	case got := <-f.access:
		if !errors.Is(got, want) {
			f.t.Fatalf("access: %v, want %v", got, want)
		}
	case <-time.After(soon):
		f.t.Fatalf("access: no report, want %v", want)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWrittenInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	write(t, path, "one")
	f := follow(t, path, "one")
	for _, data := range []string{"two", "six", "", "longer than before"} { // two has the length of six
		write(t, path, data)
		got := f.change(data)
		if got == "" && data != "" { // on a busy machine write may pause after it has truncated the file
			got = f.change(data)
		}
		if got != data {
			t.Fatalf("changed to %q, want %q", got, data)
		}
	}
}

func TestRenamedOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rules")
	write(t, path, "one")
	f := follow(t, path, "one")
	for _, data := range []string{"two", "three"} {
		write(t, path+".new", data)
		must(t, os.Rename(path+".new", path))
		f.wantChange(data)
	}
}

// In a mounted ConfigMap the file is a link to ..data/rules, and ..data a link to a directory of
// one version, which a rename replaces.
func TestSymlinkSwapped(t *testing.T) {
	dir := t.TempDir()
	version := func(name, data string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "rules"), data)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", "one")
	path := filepath.Join(dir, "rules")
	must(t, os.Symlink(filepath.Join("..data", "rules"), path))
	f := follow(t, path, "one")
	version("..2", "two")
	must(t, os.RemoveAll(filepath.Join(dir, "..1")))
	f.wantChange("two")
	version("..3", "three")
	f.wantChange("three")
}

func TestRemovedAndCreatedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	write(t, path, "one")
	f := follow(t, path, "one")
	must(t, os.Remove(path))
	f.wantAccess(fs.ErrNotExist)
	write(t, path, "one") // is no change
	f.wantAccess(nil)
	must(t, os.Remove(path))
	f.wantAccess(fs.ErrNotExist)
	write(t, path, "two")
	f.wantAccess(nil)
	f.wantChange("two")
}

func TestNoDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(dir, "rules")
	f := follow(t, path, "")
	f.wantAccess(fs.ErrNotExist)
	must(t, os.Mkdir(dir, 0o700))
	write(t, path, "one")
	f.wantAccess(nil)
	f.wantChange("one")
	must(t, os.RemoveAll(dir))
	f.wantAccess(fs.ErrNotExist)
}

// A directory cannot be read, and a pipe would block.
func TestNotRegular(t *testing.T) {
	w := watch{Config: Config{Path: t.TempDir(), MaxSize: 64}}
	if err := w.read(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("read a directory: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	f := follow(t, path, "")
	f.wantAccess(fs.ErrNotExist)
	write(t, path, strings.Repeat("x", 1000))
	f.wantAccess(nil)
	f.wantChange(strings.Repeat("x", 65))
}

// A change is reported only when two reads agree, and an error only when two fail. Each
// step is one read.
func TestHalfWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	var got []string
	w := watch{
		Config: Config{
			Path: path, MaxSize: 64,
			OnChange: func(data []byte) { got = append(got, string(data)) },
			OnAccess: func(err error) {
				if err == nil {
					got = append(got, "readable")
				} else {
					got = append(got, "unreadable")
				}
			},
		},
		known: []byte("old"),
	}
	const missing = "(missing)"
	for i, step := range []struct{ contents, want string }{
		{"old", ""},
		{"", ""}, // truncated
		{"ne", ""},
		{"new", ""},
		{"new", "new"},
		{"new", ""},
		{"newer", ""},
		{"new", ""}, // taken back
		{"newer", ""},
		{missing, ""},
		{"newer", ""}, // a read that failed is not one that agrees
		{"newer", "newer"},
		{missing, ""},
		{missing, "unreadable"},
		{missing, ""},
		{"newer", "readable"},
		{"half", ""},
		{"half", "half"}, // a writer that pauses for longer
		{"half and half", ""},
		{"half and half", "half and half"},
	} {
		if step.contents == missing {
			must(t, os.RemoveAll(path))
		} else {
			write(t, path, step.contents)
		}
		got = nil
		w.poll()
		if s := strings.Join(got, ","); s != step.want {
			t.Errorf("step %d, %q: reported %q, want %q", i, step.contents, s, step.want)
		}
	}
}

// OnChange may keep the data that it receives.
func TestDataIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	var kept [][]byte
	w := watch{Config: Config{Path: path, MaxSize: 64, OnChange: func(data []byte) { kept = append(kept, data) }}}
	for _, data := range []string{"one", "two"} {
		write(t, path, data)
		w.poll()
		w.poll()
	}
	if want := [][]byte{[]byte("one"), []byte("two")}; len(kept) != 2 || !bytes.Equal(kept[0], want[0]) || !bytes.Equal(kept[1], want[1]) {
		t.Errorf("kept %q, want %q", kept, want)
	}
}

// BenchmarkRead measures the work that Run does four times a second.
func BenchmarkRead(b *testing.B) {
	for name, size := range map[string]int{"4KiB": 4 << 10, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			data := bytes.Repeat([]byte("x"), size)
			path := filepath.Join(b.TempDir(), "rules")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				b.Fatal(err)
			}
			w := watch{Config: Config{Path: path, MaxSize: 1 << 20}, known: data}
			for b.Loop() {
				w.poll()
			}
		})
	}
}
