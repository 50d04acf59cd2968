package real

import (
	"context"
	_ "embed"
	"fmt"
)

const kafkaVersion = "4.3.1"

// kafkaPOM names Kafka's jar and a logger, of the versions that are tested.
//
//go:embed kafka_pom.xml
var kafkaPOM []byte

// kafkaJars returns the directory of Kafka's jars, which Maven fetches once.
func kafkaJars(ctx context.Context) (string, error) {
	jars, err := mavenJars(ctx, "kafka-"+kafkaVersion, kafkaPOM)
	if err != nil {
		return "", fmt.Errorf("get Kafka's jars: %w", err)
	}
	return jars, nil
}
