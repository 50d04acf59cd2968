package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// fetchPatience is for some 50 MB over a slow line.
const fetchPatience = 4 * time.Minute

// mavenJars returns the directory, in the cache by that name, of the jars that a POM
// depends on.
func mavenJars(ctx context.Context, name string, pom []byte) (string, error) {
	dir, err := cached(name, func(work string) error {
		ctx, cancel := context.WithTimeout(ctx, fetchPatience)
		defer cancel()
		if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o600); err != nil {
			return err
		}
		return runIn(ctx, work, "mvn", "-q", "-B", "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory=jars")
	})
	return filepath.Join(dir, "jars"), err
}

func runIn(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}
