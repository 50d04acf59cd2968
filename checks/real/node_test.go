package real

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestNode(t *testing.T) {
	node, modules := Node(t, statsdPackage)
	program := exec.Command(node, "-e", `console.log(require("statsd/package.json").version)`)
	program.Env = append(os.Environ(), "NODE_PATH="+modules)
	p := testenv.Start(t, program)
	if code := p.Wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.Stderr())
	}
	if _, want, _ := strings.Cut(statsdPackage, "@"); strings.TrimSpace(p.Stdout()) != want {
		t.Errorf("version %q, want %s", p.Stdout(), want)
	}
}

func TestNodeWithoutNode(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CI", "true")
	if got := outcome(t, func(tb testing.TB) { Node(tb, statsdPackage) }); got != "failed" {
		t.Errorf("Node in CI without node: the test was %s, want failed", got)
	}
}
