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

// Transports for counts.
const (
	StatsD = "statsd"
	Kafka  = "kafka"
)

// transport carries counts from the instances to the set of hot keys in Redis.
type transport interface {
	// sink returns a sink for an instance's counts that is ready to use.
	sink(ctx context.Context, instance string) (collector.Sink, error)
	// stages returns functions to run, which are to be ended one after the other.
	stages() []func(context.Context) error
	stats() statsdsource.Stats
	// overflow returns the number of hot keys that found no room in Redis.
	overflow() int64
	// description describes the transport and its address.
	description() string
	// close releases the remaining resources when the stages have ended.
	close()
}

func newTransport(ctx context.Context, name string, rules *rules.Rules, redis *embeddedRedis, log *slog.Logger) (transport, error) {
	switch name {
	case StatsD:
		return newStatsD(ctx, rules, redis, log)
	case Kafka:
		return newKafka(rules, redis, log)
	}
	return nil, fmt.Errorf("there is no transport %q", name)
}

// statsd is the transport over the aggregator's UDP listener.
type statsd struct {
	rules      *rules.Rules
	publisher  *hotkeys.Publisher
	aggregator *statsdsource.Source
}

func newStatsD(ctx context.Context, rules *rules.Rules, redis *embeddedRedis, log *slog.Logger) (_ *statsd, err error) {
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
func (s *statsd) description() string {
	return "StatsD lines over UDP, to " + s.aggregator.Addr().String()
}
func (s *statsd) close() {}
