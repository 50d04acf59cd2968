package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// partitions is the number of partitions for the counts.
const partitions = 12

// session is the silence after which an aggregator loses its partitions.
const session = 1500 * time.Millisecond

// kafkaFleet is a fleet whose counts travel over a real Kafka.
type kafkaFleet struct {
	*fleet
	kafka  *real.KafkaCluster
	topic  string
	acks   string
	buffer string
}

// newKafkaFleet creates a topic for its counts. The caller is responsible for faults of Redis.
func newKafkaFleet(t *testing.T, kafka *real.KafkaCluster, redisURL, acks, rules string) *kafkaFleet {
	t.Helper()
	f := &kafkaFleet{kafka: kafka, topic: "counters-acks-" + acks, acks: acks, buffer: "16MiB", fleet: newFleetOn(t, quickCommands(t), rules, redisURL)}
	f.memory, f.beat = "16MB", 10*time.Second
	f.settles = 10 * time.Second // an aggregator that takes over a partition waits for the instances, which start late on a busy machine
	f.sections = func() string {
		return fmt.Sprintf(`aggregator: {source: kafka, redis: %q, http: "127.0.0.1:0", memory: %s}
kafka: {brokers: ["%s"], topic: %s, acks: %q, session: %v, buffer: %s}`,
			f.redisURL, f.memory, strings.Join(f.kafka.Addrs(), `", "`), f.topic, f.acks, session, f.buffer)
	}
	config := map[string]string{"message.timestamp.type": "LogAppendTime"}
	replicas := len(kafka.Addrs())
	if replicas == 3 {
		config["min.insync.replicas"] = "2"
	}
	kafka.CreateTopic(f.topic, partitions, replicas, config)
	return f
}

func (f *kafkaFleet) startAggregator(name string) *daemon {
	f.t.Helper()
	return f.fleet.startAggregator("--name", name)
}

func (f *kafkaFleet) startAggregators(names ...string) []*daemon {
	f.t.Helper()
	all := make([]*daemon, len(names))
	for i, name := range names {
		all[i] = f.startAggregator(name)
	}
	return all
}
