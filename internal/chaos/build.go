package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the paths of what a run starts.
type Programs struct {
	Hotparam string // cmd/hotparam
	Instance string // internal/chaos/cmd/instance
}

// Build builds the programs of this checkout into dir, with the faults planted.
func Build(dir string, faults ...Fault) (Programs, error) {
	p := Programs{filepath.Join(dir, "hotparam"), filepath.Join(dir, "instance")}
	root, err := moduleRoot()
	if err != nil {
		return p, err
	}
	args := []string{"build"}
	if len(faults) > 0 {
		overlay, err := writeOverlay(dir, root, faults)
		if err != nil {
			return p, err
		}
		args = append(args, "-overlay", overlay)
	}
	for path, source := range map[string]string{p.Hotparam: "./cmd/hotparam", p.Instance: "./internal/chaos/cmd/instance"} {
		cmd := exec.Command("go", append(args, "-o", path, source)...)
		cmd.Dir = root
		if output, err := cmd.CombinedOutput(); err != nil {
			return p, fmt.Errorf("chaos: %s: %w\n%s", cmd, err, output)
		}
	}
	return p, nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("chaos: find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// writeOverlay writes the changed sources beside the programs, and the file that tells
// the go command of them.
func writeOverlay(dir, root string, faults []Fault) (string, error) {
	replace := make(map[string]string)
	for _, f := range faults {
		for i, e := range f.Edits {
			path := filepath.Join(root, filepath.FromSlash(e.File))
			from := path
			if earlier, ok := replace[path]; ok {
				from = earlier
			}
			text, err := os.ReadFile(from)
			if err != nil {
				return "", fmt.Errorf("chaos: fault %s: %w", f.Name, err)
			}
			if n := bytes.Count(text, []byte(e.Old)); n != 1 {
				return "", fmt.Errorf("chaos: fault %s: %s has %d times, want once:\n%s", f.Name, e.File, n, e.Old)
			}
			changed := filepath.Join(dir, fmt.Sprintf("%s-%d-%s", f.Name, i, filepath.Base(e.File)))
			if err := os.WriteFile(changed, bytes.Replace(text, []byte(e.Old), []byte(e.New), 1), 0o600); err != nil {
				return "", err
			}
			replace[path] = changed
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
