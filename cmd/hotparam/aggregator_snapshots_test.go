package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file has the newest snapshot whole, for this user alone. Without a file there is none, and a
// directory that does not exist is an error of the settings.
func TestFileSnapshots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	f := fileSnapshots{path: path}
	if data, err := f.Load(t.Context()); data != nil || err != nil {
		t.Errorf("without a file: %q, %v", data, err)
	}
	for _, text := range []string{"a long one", "short"} {
		if err := f.Save(t.Context(), []byte(text), time.Minute); err != nil {
			t.Fatal(err)
		}
		if data, err := f.Load(t.Context()); string(data) != text || err != nil {
			t.Errorf("%q, %v, want %q", data, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	file := write(t, goodRules+"aggregator: {snapshot_file: "+filepath.Join(t.TempDir(), "none", "snapshot")+"}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := run(ctx, []string{"aggregator", "--config", file, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	if r != exitConfig {
		t.Errorf("a directory that does not exist: exit code %d", r)
	}
}
