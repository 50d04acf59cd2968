package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

func (c *instanceConfig) kafkaSink(rules *rules.Rules) (collector.Sink, error) {
	return kafkasink.New(kafkasink.Config{
		Rules: rules, Connection: kafka.Connection{Brokers: c.Brokers}, Topic: c.Topic, Instance: c.name(),
	})
}

// assignTimeout bounds the formation of a group with one member.
const assignTimeout = 20 * time.Second

// kafkaSource returns the aggregator over Kafka. It is the only member of its group.
func (c *partConfig) kafkaSource(client redis.UniversalClient, seen *probes) *pipelineSource {
	source := kafkasource.New(kafkasource.Config{
		Connection: kafka.Connection{Brokers: c.Brokers},
		Topic:      c.Topic,
		Group:      c.Topic,
		Rules:      c.rules(true),
		Publisher: func(partition int32) (kafkasource.PartitionPublisher, error) {
			publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{
				Namespace: c.Namespace, Owner: fmt.Sprintf("kafka-%d", partition),
			})
			return &probed{publisher, seen}, err
		},
	})
	return &pipelineSource{
		ready: func(ctx context.Context) (string, error) { return "", awaitPartitions(ctx, source) },
		counted: func() int64 {
			s := source.Stats()
			return s.Decoder.Sum - s.Detector.Late
		},
		loops: []func(context.Context) error{source.Run},
	}
}

// awaitPartitions waits until all partitions are assigned.
func awaitPartitions(ctx context.Context, source *kafkasource.Source) error {
	for deadline := time.Now().Add(assignTimeout); ; {
		if n := len(source.Stats().Partitions); n == topicPartitions {
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("it has %d of %d partitions after %v", n, topicPartitions, assignTimeout)
		}
		if err := base.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
