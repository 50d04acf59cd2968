package chaos

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/hotparam/hotparam/checks/overlay"
)

// Programs are the paths of the programs that a run starts.
type Programs struct {
	Hotparam string // cmd/hotparam
	Instance string // checks/chaos/cmd/instance
}

// Build builds the programs of this checkout into dir.
func Build(dir string) (p Programs, err error) {
	if p.Hotparam, err = build(dir, "hotparam", Fault{}); err == nil {
		p.Instance, err = build(dir, "instance", Fault{})
	}
	return p, err
}

// Plant builds into dir the program that the fault is planted in, and returns p with that program
// replaced.
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

// sources maps a program's name to its package.
var sources = map[string]string{"hotparam": "./cmd/hotparam", "instance": "./checks/chaos/cmd/instance"}

func build(dir, name string, f Fault) (path string, err error) {
	root, err := overlay.Root()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name)
	args := []string{"build", "-o", path}
	if len(f.Edits) > 0 {
		edits := make([]overlay.Edit, len(f.Edits))
		for i, e := range f.Edits {
			edits[i] = overlay.Edit(e)
		}
		changed, err := overlay.Write(dir, root, edits)
		if err != nil {
			return "", fmt.Errorf("chaos: fault %s: %w", f.Name, err)
		}
		args = append(args, "-overlay", changed)
	}
	cmd := exec.Command("go", append(args, sources[name])...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("chaos: %s: %w\n%s", cmd, err, output)
	}
	return path, nil
}
