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

// Build builds the programs of this checkout into dir.
func Build(dir string) (p Programs, err error) {
	if p.Hotparam, err = build(dir, "hotparam", Fault{}); err == nil {
		p.Instance, err = build(dir, "instance", Fault{})
	}
	return p, err
}

// Plant builds the program that the fault is planted in, into dir, in place of that of
// the programs.
func (p Programs) Plant(dir string, f Fault) (_ Programs, err error) {
	switch f.In {
	case "hotparam":
		p.Hotparam, err = build(dir, f.In, f)
	case "instance":
		p.Instance, err = build(dir, f.In, f)
	default:
		err = fmt.Errorf("chaos: fault %s: no program %q", f.Name, f.In)
	}
	return p, err
}

// sources are where the programs are, by name.
var sources = map[string]string{"hotparam": "./cmd/hotparam", "instance": "./internal/chaos/cmd/instance"}

func build(dir, name string, f Fault) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	args := []string{"build", "-o", path}
	if len(f.Edits) > 0 {
		overlay, err := writeOverlay(dir, root, f)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, sources[name])...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("chaos: %s: %w\n%s", cmd, err, output)
	}
	return path, nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("chaos: find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// writeOverlay writes the changed sources into dir, and the file that tells the go
// command of them.
func writeOverlay(dir, root string, f Fault) (string, error) {
	replace := make(map[string]string)
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
		changed := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(e.File)))
		if err := os.WriteFile(changed, bytes.Replace(text, []byte(e.Old), []byte(e.New), 1), 0o600); err != nil {
			return "", err
		}
		replace[path] = changed
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
