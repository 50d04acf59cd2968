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

// The packages of the programs.
const (
	hotparamPackage = "./cmd/hotparam"
	instancePackage = "./checks/chaos/cmd/instance"
)

func programsIn(dir string) Programs {
	return Programs{filepath.Join(dir, "hotparam"), filepath.Join(dir, "instance")}
}

// Build builds the programs of this checkout into dir.
func Build(dir string) (Programs, error) {
	return programsIn(dir), build(dir, nil, hotparamPackage, instancePackage)
}

// Plant builds into dir the program that the fault is planted in, and returns p with that program
// replaced.
func (p Programs) Plant(dir string, f Fault) (_ Programs, err error) {
	switch planted := programsIn(dir); f.In {
	case "hotparam":
		p.Hotparam, err = planted.Hotparam, build(dir, f.Edits, hotparamPackage)
	case "instance":
		p.Instance, err = planted.Instance, build(dir, f.Edits, instancePackage)
	default:
		err = fmt.Errorf("no program %q", f.In)
	}
	if err != nil {
		err = fmt.Errorf("chaos: fault %s: %w", f.Name, err)
	}
	return p, err
}

func build(dir string, edits []overlay.Edit, packages ...string) error {
	root, err := overlay.Root()
	if err != nil {
		return err
	}
	changed, err := overlay.Write(dir, root, edits)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"build", "-overlay", changed, "-o", dir + "/"}, packages...)...)
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("chaos: %s: %w\n%s", cmd, err, output)
	}
	return nil
}
