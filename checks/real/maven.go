package real

import (
	"context"
	"os"
	"path/filepath"

	"github.com/hotparam/hotparam/internal/testenv"
)

// mavenJars returns the directory, in the cache under that name, of the jars that a POM depends
// on.
func mavenJars(ctx context.Context, name string, pom []byte) (string, error) {
	dir, err := testenv.Cached(name, func(work string) error {
		ctx, cancel := context.WithTimeout(ctx, testenv.FetchPatience)
		defer cancel()
		if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o600); err != nil {
			return err
		}
		return testenv.RunIn(ctx, work, "mvn", "-q", "-B", "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory=jars")
	})
	return filepath.Join(dir, "jars"), err
}
