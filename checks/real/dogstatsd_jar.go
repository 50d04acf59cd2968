package real

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

const dogStatsDVersion = "4.4.5"

// dogStatsDPOM names Datadog's StatsD client for Java, of the version that is tested.
//
//go:embed dogstatsd_pom.xml
var dogStatsDPOM []byte

// DogStatsDClasspath returns the class path of java-dogstatsd-client, which Maven fetches once.
// If that fails, the test is skipped (see the package).
func DogStatsDClasspath(tb testing.TB) string {
	tb.Helper()
	jars, err := mavenJars(tb.Context(), "java-dogstatsd-client-"+dogStatsDVersion, dogStatsDPOM)
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no java-dogstatsd-client (Debian: apt-get install maven): %v", err))
	}
	return filepath.Join(jars, "*")
}
