package demo

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/statsdsource"
	"github.com/hotparam/hotparam/rules"
)

// Transports that counts can go over.
const (
	StatsD = "statsd"
	Kafka  = "kafka"
)

// transport takes counts from the instances to the set of hot keys in Redis.
type transport interface {
	// sink is where an instance sends its counts, ready to take them.
	sink(ctx context.Context, instance string) (collector.Sink, error)
	// stages are to be run, and end one after the other.
	stages() []func(context.Context) error
	stats() statsdsource.Stats
	// overflow is how many hot keys found no room in Redis.
	overflow() int64
	// over says what it is, and where.
	over() string
	// close releases the remaining resources when the stages have ended.
	close()
}

func newTransport(ctx context.Context, name string, rules *rules.Rules, redis *redisServer, log *slog.Logger) (transport, error) {
	switch name {
	case StatsD:
		return newStatsD(ctx, rules, redis, log)
	case Kafka:
		return newKafka(rules, redis, log)
	}
	return nil, fmt.Errorf("there is no transport %q", name)
}

// statsd is the aggregator's own UDP listener.
type statsd struct {
	rules      *rules.Rules
	publisher  *hotkeys.Publisher
	aggregator *statsdsource.Source
}

func newStatsD(ctx context.Context, rules *rules.Rules, redis *redisServer, log *slog.Logger) (_ *statsd, err error) {
	client, err := redis.client()
	if err != nil {
		return nil, err
	}
	s := &statsd{rules: rules}
	if s.publisher, err = hotkeys.NewPublisher(client, publisherConfig(log)); err != nil {
		return nil, err
	}
	s.aggregator, err = statsdsource.New(ctx, statsdsource.Config{Rules: rules, Publisher: s.publisher, Listen: []string{"127.0.0.1:0"}})
	return s, err
}

func publisherConfig(log *slog.Logger) hotkeys.PublisherConfig {
	return hotkeys.PublisherConfig{Namespace: Namespace, Timeout: redisTimeout, Logger: log}
}

func (s *statsd) sink(_ context.Context, instance string) (collector.Sink, error) {
	sink, err := statsdsink.New(statsdsink.Config{Rules: s.rules, Addrs: []string{s.aggregator.Addr().String()}, Instance: instance})
	if err != nil {
		return nil, err
	}
	return sink, nil
}

func (s *statsd) stages() []func(context.Context) error {
	return []func(context.Context) error{s.aggregator.Run, s.publisher.Run}
}

func (s *statsd) stats() statsdsource.Stats { return s.aggregator.Stats() }
func (s *statsd) overflow() int64           { return int64(s.publisher.Stats().Overflow) }
func (s *statsd) over() string              { return "StatsD lines over UDP, to " + s.aggregator.Addr().String() }
func (s *statsd) close()                    {}
