package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNoKafka means that no Kafka is available.
var ErrNoKafka = errors.New("there is no Kafka to go over")

// benchTopic is a topic, and a consumer group of the same name, for one measurement.
type benchTopic struct {
	brokers []string
	name    string
}

// topicPartitions is the number of the topic's partitions.
const topicPartitions = 12

// useKafka uses the given Kafka, or starts one, and creates the topic.
func (p *pipeline) useKafka(ctx context.Context) (brokers []string, err error) {
	if brokers = p.config.Brokers; len(brokers) == 0 {
		if parts["broker"] == nil {
			return nil, fmt.Errorf("%w: this build is for deployment and contains no broker: name one with --brokers", ErrNoKafka)
		}
		broker, err := p.harness.start(ctx, "broker", struct{}{})
		if err != nil {
			return nil, err
		}
		brokers = make([]string, 1)
		if err := broker.receive(&brokers[0]); err != nil {
			return nil, err
		}
	}
	t := &benchTopic{brokers: brokers, name: "hotparam." + p.namespace}
	err = t.admin(ctx, func(ctx context.Context, admin *kadm.Client) error {
		made, err := admin.CreateTopic(ctx, topicPartitions, -1, nil, t.name)
		return errors.Join(err, made.Err)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: topic %s: %w", ErrNoKafka, t.name, err)
	}
	p.topic = t
	return brokers, nil
}

// remove deletes the topic and the group.
func (t *benchTopic) remove() error {
	err := t.admin(context.Background(), func(ctx context.Context, admin *kadm.Client) error {
		_, err := admin.DeleteTopic(ctx, t.name)
		_, groupErr := admin.DeleteGroup(ctx, t.name)
		if errors.Is(groupErr, kerr.GroupIDNotFound) { // it has had no member yet
			groupErr = nil
		}
		return errors.Join(err, groupErr)
	})
	if err != nil {
		return fmt.Errorf("bench: clean up Kafka: %w", err)
	}
	return nil
}

// adminTimeout bounds requests to a Kafka that may not be running.
const adminTimeout = 5 * time.Second

func (t *benchTopic) admin(ctx context.Context, do func(context.Context, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	return do(ctx, kadm.NewClient(client))
}
