package real

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A Maven of our own that logs each call. It fails the first time, half done.
const fakeMaven = `#!/bin/sh
mkdir jars
[ -f "$CALLS" ] && echo jar >jars/kafka.jar
echo called >>"$CALLS"
[ -f jars/kafka.jar ]
`

func TestKafkaJarsAreFetchedOnce(t *testing.T) {
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	if err := os.WriteFile(filepath.Join(bin, "mvn"), []byte(fakeMaven), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("CALLS", calls)
	t.Setenv("HOME", t.TempDir()) // macOS keeps caches there
	t.Setenv("XDG_CACHE_HOME", t.TempDir())

	if dir, err := kafkaJars(t.Context()); err == nil {
		t.Fatalf("a failed fetch gave %s", dir)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			dir, err := kafkaJars(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(dir, "kafka.jar")); err != nil {
				t.Errorf("no jar in %s", dir)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(calls)
	if n := strings.Count(string(text), "called"); err != nil || n != 2 {
		t.Errorf("Maven was called %d times (%v), want once in vain and once more", n, err)
	}
	cache, _ := os.UserCacheDir()
	if left, _ := filepath.Glob(filepath.Join(cache, "hotparam-test", "fetch-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestPythonWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("CI", "true")
	if got := outcome(t, func(tb testing.TB) { Python(tb, "no-such-package==1") }); got != "failed" {
		t.Errorf("Python in CI without python3: the test was %s, want failed", got)
	}
}
