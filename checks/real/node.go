package real

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Node returns the path of the Node in PATH and a directory with the npm packages
// ("hot-shots@11.0.0"). Programs may require them if they run with NODE_PATH set to the
// directory. Packages are fetched once, without their optional dependencies. If they cannot be
// fetched, the test is skipped (see the package).
func Node(tb testing.TB, packages ...string) (node, modules string) {
	tb.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		testenv.Unavailable(tb, "no node in PATH: install Node.js (Debian: apt-get install nodejs npm)")
	}
	modules, err = nodeModules(tb.Context(), packages...)
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no npm packages %q (Debian: apt-get install npm): %v", packages, err))
	}
	return node, modules
}

func nodeModules(ctx context.Context, packages ...string) (string, error) {
	name := strings.NewReplacer("/", "+").Replace(strings.Join(packages, "-"))
	dir, err := testenv.Cached("node-"+name, func(work string) error {
		ctx, cancel := context.WithTimeout(ctx, testenv.FetchPatience)
		defer cancel()
		// The prefix prevents npm from looking for a package.json in a parent directory.
		npm := []string{"install", "--prefix", ".", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"}
		return testenv.RunIn(ctx, work, "npm", append(npm, packages...)...)
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "node_modules"), nil
}
