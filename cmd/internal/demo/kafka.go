package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/kafkafake"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/statsdsource"
	"github.com/hotparam/hotparam/internal/wire"
	kafkaconn "github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// kafkaPartitions is enough to show that partitions work in parallel.
const kafkaPartitions = 4

// kafka is an embedded broker and an aggregator that is the only member of its group.
type kafka struct {
	rules  *rules.Rules
	log    *slog.Logger
	broker *kafkafake.Broker
	client redis.UniversalClient
	source *kafkasource.Source

	mu         sync.Mutex
	publishers []*hotkeys.Publisher
}

func newKafka(rules *rules.Rules, redis *embeddedRedis, log *slog.Logger) (_ *kafka, err error) {
	k := &kafka{rules: rules, log: log}
	if k.client, err = redis.client(); err != nil {
		return nil, err
	}
	if k.broker, err = kafkafake.Start(kafkaPartitions, wire.DefaultTopic); err != nil {
		return nil, err
	}
	k.source = kafkasource.New(kafkasource.Config{
		Connection: k.connection(), Rules: rules, Publisher: k.publisher, Log: log,
	})
	return k, nil
}

func (k *kafka) connection() kafkaconn.Connection {
	return kafkaconn.Connection{Brokers: []string{k.broker.Addr()}}
}

// publisher returns a publisher for a partition.
func (k *kafka) publisher(partition int32) (kafkasource.PartitionPublisher, error) {
	c := publisherConfig(k.log)
	c.Owner = fmt.Sprintf("kafka-%d", partition)
	p, err := hotkeys.NewPublisher(k.client, c)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.publishers = append(k.publishers, p)
	return p, nil
}

// connectTimeout is the time that the embedded broker has to answer.
const connectTimeout = 10 * time.Second

// sink returns a sink that is connected already. A sink connects on its first use, and drops
// counts that arrive before it knows the partitions. That hardly matters to a user's service, but
// the demo would have to report it.
func (k *kafka) sink(ctx context.Context, instance string) (collector.Sink, error) {
	sink, err := kafkasink.New(kafkasink.Config{Rules: k.rules, Connection: k.connection(), Instance: instance, Log: k.log})
	if err != nil {
		return nil, err
	}
	sink.Send(ctx, collector.Flush{Start: time.Now(), Held: 1}, nil) // a heartbeat
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for sink.Stats().Partitions == 0 {
		if err := base.Sleep(ctx, time.Millisecond); err != nil {
			return nil, errors.Join(fmt.Errorf("embedded Kafka: %w", err), sink.Close())
		}
	}
	return sink, nil
}

func (k *kafka) stages() []func(context.Context) error {
	return []func(context.Context) error{k.source.Run}
}

func (k *kafka) stats() statsdsource.Stats {
	s := k.source.Stats()
	return statsdsource.Stats{Decoder: s.Decoder, Detector: s.Detector}
}

func (k *kafka) overflow() (n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.publishers {
		n += int64(p.Stats().Overflow)
	}
	return n
}

func (k *kafka) description() string {
	return fmt.Sprintf("Kafka (embedded) at %s, topic %s, %d partitions", k.broker.Addr(), wire.DefaultTopic, kafkaPartitions)
}

func (k *kafka) close() { k.broker.Close() }
