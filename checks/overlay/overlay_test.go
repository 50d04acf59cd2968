package overlay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestWrite(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	testenv.WriteFile(t, filepath.Join(root, "a.go"), "one two two three")
	name, err := Write(dir, root, []Edit{{"a.go", "one two", "1 2"}, {"a.go", "1 2 two", "1 2 2"}})
	if err != nil {
		t.Fatal(err)
	}
	text := testenv.ReadFile(t, name)
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal([]byte(text), &overlay); err != nil {
		t.Fatal(err)
	}
	changed, err := os.ReadFile(overlay.Replace[filepath.Join(root, "a.go")])
	if err != nil || string(changed) != "1 2 2 three" || len(overlay.Replace) != 1 {
		t.Errorf("%v, %q, %v", err, changed, overlay)
	}
	for _, old := range []string{"four", "two"} {
		if _, err := Write(dir, root, []Edit{{"a.go", old, ""}}); err == nil || !strings.Contains(err.Error(), "a.go has") {
			t.Errorf("%q: %v", old, err)
		}
	}
	if _, err := Write(dir, root, []Edit{{"b.go", "", ""}}); err == nil {
		t.Error("a file that is missing: no error")
	}
}
