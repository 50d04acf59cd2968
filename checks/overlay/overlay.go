// Package overlay changes texts of the module's sources for one run of the go command, with its
// flag -overlay: no file is copied, and the checkout stays unchanged. Checks use it to plant
// mistakes and to verify that the tests find them.
package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit replaces a text that occurs exactly once in a file. File is a slash-separated path from
// the module's root.
type Edit struct{ File, Old, New string }

// Root returns the directory of the module that the working directory is in.
func Root() (string, error) {
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOMOD").Output() // go list -m would list all modules of a workspace
	if err != nil {
		return "", fmt.Errorf("overlay: find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// Write writes the changed sources and the file for -overlay into dir, and returns the path of
// that file. It is an error if a text does not occur exactly once in its file. The sources have
// changed then, and the edit must be adapted.
func Write(dir, root string, edits []Edit) (string, error) {
	changed := make(map[string][]byte)
	for _, e := range edits {
		path := filepath.Join(root, filepath.FromSlash(e.File))
		text, ok := changed[path]
		if !ok {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				return "", fmt.Errorf("overlay: %w", err)
			}
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 {
			return "", fmt.Errorf("overlay: %s has %d times, want once:\n%s", e.File, n, e.Old)
		}
		changed[path] = bytes.Replace(text, []byte(e.Old), []byte(e.New), 1)
	}
	replace := make(map[string]string)
	for path, text := range changed {
		name := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return "", err
		}
		replace[path] = name
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}
