package real

import (
	"os/exec"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Java returns the path of a java that can run a program from its source ("java -cp …
// Program.java"), which takes a compiler. Without one the test is skipped (see the package).
func Java(tb testing.TB) string {
	tb.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		testenv.Unavailable(tb, "no javac in PATH: install a JDK (Debian: apt-get install default-jdk-headless)")
	}
	path, err := exec.LookPath("java")
	if err != nil {
		testenv.Unavailable(tb, "no java in PATH: install a JDK (Debian: apt-get install default-jdk-headless)")
	}
	return path
}
