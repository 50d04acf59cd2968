package testenv

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const kafkaVersion = "4.3.1"

// kafkaPOM names Kafka's jar and a logger, of the versions that are tested.
//
//go:embed kafka_pom.xml
var kafkaPOM []byte

// fetchPatience is for some 50 MB over a slow line.
const fetchPatience = 4 * time.Minute

// kafkaJars returns the directory of Kafka's jars, which Maven gets once.
func kafkaJars(ctx context.Context) (string, error) {
	dir, err := cached("kafka-"+kafkaVersion, func(work string) error {
		ctx, cancel := context.WithTimeout(ctx, fetchPatience)
		defer cancel()
		if err := os.WriteFile(filepath.Join(work, "pom.xml"), kafkaPOM, 0o600); err != nil {
			return err
		}
		return runIn(ctx, work, "mvn", "-q", "-B", "dependency:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory=jars")
	})
	if err != nil {
		return "", fmt.Errorf("get Kafka's jars: %w", err)
	}
	return filepath.Join(dir, "jars"), nil
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
