package real

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// The versions that are tested, as the POMs name them.
const (
	kafkaVersion     = "4.3.1"
	dogStatsDVersion = "4.4.5"
)

// kafkaPOM names Kafka's jar and a logger, dogStatsDPOM Datadog's StatsD client for Java.
var (
	//go:embed kafka_pom.xml
	kafkaPOM []byte
	//go:embed dogstatsd_pom.xml
	dogStatsDPOM []byte
)

// kafkaJars returns the directory of Kafka's jars, which Maven fetches once.
func kafkaJars(ctx context.Context) (string, error) {
	return mavenJars(ctx, "kafka-"+kafkaVersion, kafkaPOM)
}

// needKafka returns the directory of Kafka's jars. Without them, or Java, the test is skipped.
func needKafka(tb testing.TB) (jars string) {
	tb.Helper()
	testenv.Program(tb, "default-jdk-headless", "java")
	jars, err := kafkaJars(tb.Context())
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no Kafka (Debian: apt-get install maven): %v", err))
	}
	return jars
}

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

// mavenJars returns the directory, in the cache under that name, of the jars that a POM depends
// on.
func mavenJars(ctx context.Context, name string, pom []byte) (string, error) {
	dir, err := cached(ctx, name, func(ctx context.Context, work string) error {
		if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o600); err != nil {
			return err
		}
		return runIn(ctx, work, "mvn", "-q", "-B", "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory=jars")
	})
	return filepath.Join(dir, "jars"), err
}
