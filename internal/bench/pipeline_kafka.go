package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/statsdsource"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

func (c *pipelineInstanceConfig) kafkaSink(rules *rules.Rules) (collector.Sink, error) {
	return kafkasink.New(kafkasink.Config{
		Rules: rules, Connection: kafka.Connection{Brokers: c.Brokers}, Topic: c.Topic, Instance: c.Name,
	})
}

// kafkaSource is the aggregator over Kafka. It is the only member of its group.
type kafkaSource struct{ *kafkasource.Source }

func (c *pipelineConfig) kafkaSource(client redis.UniversalClient, seen *probes) (*kafkaSource, error) {
	source, err := kafkasource.New(kafkasource.Config{
		Connection: kafka.Connection{Brokers: c.Brokers},
		Topic:      c.Topic,
		Group:      c.Topic,
		Rules:      c.rules(true),
		Publisher: func(partition int32) (kafkasource.PartitionPublisher, error) {
			publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{
				Namespace: c.Namespace, Owner: fmt.Sprintf("kafka-%d", partition),
			})
			return &probedPartition{probed{Publisher: publisher, probes: seen}, publisher}, err
		},
	})
	return &kafkaSource{source}, err
}

// probedPartition is [probed] for one partition.
type probedPartition struct {
	probed
	partition *hotkeys.Publisher
}

// Adopt implements [kafkasource.Publisher].
func (p *probedPartition) Adopt(ctx context.Context) ([]rules.Hot, time.Time, error) {
	return p.partition.Adopt(ctx)
}

// Judged implements [kafkasource.Publisher].
func (p *probedPartition) Judged(until time.Time) { p.partition.Judged(until) }

// Run implements [kafkasource.Publisher].
func (p *probedPartition) Run(ctx context.Context) error { return p.partition.Run(ctx) }

// assignTimeout bounds the formation of a group with one member.
const assignTimeout = 20 * time.Second

// ready waits until all partitions are assigned.
func (s *kafkaSource) ready(ctx context.Context) (string, error) {
	for deadline := time.Now().Add(assignTimeout); ; {
		if n := len(s.Source.Stats().Partitions); n == topicPartitions {
			return "", nil
		} else if time.Now().After(deadline) {
			return "", fmt.Errorf("it has %d of %d partitions after %v", n, topicPartitions, assignTimeout)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func (s *kafkaSource) stats() statsdsource.Stats {
	all := s.Source.Stats()
	return statsdsource.Stats{Decoder: all.Decoder, Detector: all.Detector}
}

func (s *kafkaSource) loops() []func(context.Context) error {
	return []func(context.Context) error{s.Run}
}
