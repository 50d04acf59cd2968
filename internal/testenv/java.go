package testenv

import (
	"os/exec"
	"testing"
)

// Java returns the path of a java that runs a program from its source
// ("java -cp … Program.java"): one that has a compiler beside it. Without one the
// test is skipped (see the package).
func Java(tb testing.TB) string {
	tb.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		unavailable(tb, "no javac in PATH: install a JDK (Debian: apt-get install default-jdk-headless)")
	}
	path, err := exec.LookPath("java")
	if err != nil {
		unavailable(tb, "no java in PATH: install a JDK (Debian: apt-get install default-jdk-headless)")
	}
	return path
}
