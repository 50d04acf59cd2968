package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file holds the newest snapshot whole, readable for this user alone. Without a file there is
// no snapshot.
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
}
