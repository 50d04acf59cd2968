package real

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Netcat returns the path of nc. Without one the test is skipped (see the package).
func Netcat(tb testing.TB) string {
	tb.Helper()
	return testenv.Program(tb, "netcat-openbsd", "nc")
}

// Promtool returns the path of promtool. Without one the test is skipped (see the package).
func Promtool(tb testing.TB) string {
	tb.Helper()
	return testenv.Program(tb, "prometheus", "promtool")
}

// Java returns the path of a java that can run a program from its source ("java -cp …
// Program.java"), which takes a compiler. Without one the test is skipped (see the package).
func Java(tb testing.TB) string {
	tb.Helper()
	testenv.Program(tb, "default-jdk-headless", "javac")
	return testenv.Program(tb, "default-jdk-headless", "java")
}

// Python returns the path of a Python 3 that has the packages ("kafka-python==3.0.12") and no
// others. It is in a virtual environment in the user's cache, created once by the python3 of the
// PATH. Without packages, Python returns the python3 of the PATH itself. If there is none, the
// test is skipped (see the package).
func Python(tb testing.TB, packages ...string) string {
	tb.Helper()
	if len(packages) == 0 {
		return testenv.Program(tb, "python3", "python3")
	}
	dir, err := pythonPackages(tb.Context(), packages...)
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no Python with %q (Debian: apt-get install python3-venv): %v", packages, err))
	}
	return filepath.Join(dir, "bin", "python")
}

// Node returns the path of the Node in PATH and a directory with the npm packages
// ("hot-shots@11.0.0"). Programs may require them if they run with NODE_PATH set to the
// directory. Packages are fetched once, without their optional dependencies. If they cannot be
// fetched, the test is skipped (see the package).
func Node(tb testing.TB, packages ...string) (node, modules string) {
	tb.Helper()
	node = testenv.Program(tb, "nodejs npm", "node")
	name := strings.ReplaceAll(strings.Join(packages, "-"), "/", "+")
	dir, err := cached(tb.Context(), "node-"+name, func(ctx context.Context, work string) error {
		// The prefix prevents npm from looking for a package.json in a parent directory.
		npm := []string{"install", "--prefix", ".", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"}
		return runIn(ctx, work, "npm", append(npm, packages...)...)
	})
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no npm packages %q (Debian: apt-get install npm): %v", packages, err))
	}
	return node, filepath.Join(dir, "node_modules")
}
