package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

var kafkaWay = source{
	open:   newKafkaPipeline,
	server: "Kafka",
	read:   topicWords,
	sent: func(f *config.File) string {
		words := topicWords(f) + ", acks=" + cmp.Or(f.Kafka.Acks, config.AcksOne)
		if f.Kafka.Idempotent {
			words += ", idempotent"
		}
		switch k := f.Kafka; {
		case k.SASL != nil && k.TLS != nil:
			words += ", TLS, SASL " + k.SASL.Mechanism
		case k.SASL != nil:
			words += ", SASL " + k.SASL.Mechanism + " in the clear"
		case k.TLS != nil:
			words += ", TLS"
		}
		return words + trustWords(f.Aggregator)
	},
}

func topicWords(f *config.File) string {
	k := f.Kafka.WithDefaults()
	return fmt.Sprintf("Kafka topic %s at %s", cmp.Or(k.Topic, wire.DefaultTopic), strings.Join(k.Brokers, ", "))
}

// kafkaPipeline is the pipeline of a consumer group member. It has a publisher for each of its
// partitions.
type kafkaPipeline struct {
	source     *kafkasource.Source
	publishers *publishers
	brokers    []string
	log        *slog.Logger
}

// newKafkaPipeline returns a pipeline after checking that the brokers answer and grant access. If
// they do not, newKafkaPipeline returns an error within seconds.
func newKafkaPipeline(ctx context.Context, set *settings) (pipeline, error) {
	p, err := makeKafkaPipeline(set)
	if err != nil {
		return nil, configError(err)
	}
	if err := p.source.Check(ctx); err != nil {
		if noAnswer(err) {
			return nil, unreachableError(err)
		}
		return nil, configError(err)
	}
	return p, nil
}

// makeKafkaPipeline returns a pipeline without contacting any broker.
func makeKafkaPipeline(set *settings) (*kafkaPipeline, error) {
	rules, k := set.File.Rules, set.File.Kafka
	trust, err := set.trust()
	if err != nil {
		return nil, err
	}
	p := &kafkaPipeline{
		publishers: newPublishers(set.Redis, partitionConfig(rules, k.Session, set.Log, set.outcomes), set.history),
		brokers:    k.Brokers,
		log:        set.Log,
	}
	p.source = kafkasource.New(kafkasource.Config{
		Connection: k.Connection, Topic: k.Topic, Group: k.Group, Session: k.Session,
		Member: set.File.Aggregator.Name,
		Rules:  rules, Encoding: set.Encoding, Canonical: set.File.Aggregator.Canonical, Memory: set.File.Aggregator.Memory,
		Publisher: func(partition int32) (kafkasource.PartitionPublisher, error) {
			return p.publishers.newPublisher(partition)
		},
		Days:   set.days,
		OnTops: set.history.onPartition(),
		Trust:  trust,
		Log:    set.Log,
	})
	return p, nil
}

// partitionConfig returns the configuration of a partition's publisher. Published entries must
// last until another aggregator has taken the partition over, which takes the dead one's session
// and a rebalance. They must also last until Redis has failed over.
func partitionConfig(rules *rules.Rules, session time.Duration, log *slog.Logger, outcomes *admitted.Totals) hotkeys.PublisherConfig {
	const rebalance = 5 * time.Second
	session = cmp.Or(session, kafkasource.DefaultSession)
	return hotkeys.PublisherConfig{
		Namespace: rules.Namespace, Rules: hotRules(rules), Outcomes: outcomes, Logger: log,
		EntryTTL: max(15*time.Second, session+rebalance),
		BeatTTL:  max(10*time.Second, session+rebalance),
	}
}

// noAnswer reports whether err means that no broker answered, as opposed to an answer that is an
// error.
func noAnswer(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "dial" || errors.Is(err, context.DeadlineExceeded)
}

// Run implements pipeline.
func (p *kafkaPipeline) Run(ctx context.Context) error {
	err := p.source.Run(ctx)
	p.log.Info("aggregator has drained", "counts", p.source.Stats().Decoder.Counts)
	if err != nil {
		return configError(err) // unavailable brokers are retried: this error is a refusal
	}
	return nil
}

func (p *kafkaPipeline) reload(rules *rules.Rules) error {
	p.source.Reload(rules)
	p.publishers.reload(hotRules(rules))
	return nil
}

// publishes reports whether the hot keys of at least one partition reach Redis from here.
func (p *kafkaPipeline) publishes() bool { return p.publishers.anyPublishes() }

func (p *kafkaPipeline) ready() (string, error) {
	source, published := p.source.Stats(), p.publishers.stats()
	return kafkaReady(&source, &published)
}

// kafkaReady returns an error if partitions are not read. A partition whose time is held up by an
// instance counts as ready. It is still read and published, but nothing cools in it, as in any
// deploy that kills instances.
func kafkaReady(source *kafkasource.Stats, published *hotkeys.PublisherStats) (string, error) {
	var waiting, unread, heldUp []string
	for _, partition := range source.Partitions {
		name := fmt.Sprint(partition.Partition)
		if !partition.Adopted {
			waiting = append(waiting, name)
		}
		switch {
		case partition.Frozen && partition.Unread:
			unread = append(unread, name)
		case partition.Frozen:
			heldUp = append(heldUp, name)
		}
	}
	n := len(source.Partitions)
	notPublished := whyNotPublished(published)
	switch {
	case source.Rebalances == 0:
		return "", errors.New("the consumer group has not assigned partitions yet")
	case notPublished != nil:
		return "", notPublished
	case len(waiting) > 0:
		return "", fmt.Errorf("%w: %d of %d partitions are not taken over yet: %s", errNoRedis, len(waiting), n, strings.Join(waiting, ", "))
	case len(unread) > 0:
		return "", fmt.Errorf("%d of %d partitions are stalled, because their brokers do not answer: %s", len(unread), n, strings.Join(unread, ", "))
	case n == 0:
		return "standby: other aggregators have all partitions; this one gets some when one of them ends", nil
	}
	words := fmt.Sprintf("ready: %d partitions", n) + placesWords(published)
	if len(heldUp) > 0 {
		words += fmt.Sprintf("; no key cools in %d of them, because an instance is slow, dead or cannot write: %s", len(heldUp), strings.Join(heldUp, ", "))
	}
	return withTrouble(words, published) + clockWords(&source.Decoder) + lateWords(&source.Decoder) + refusedWords(&source.Decoder), nil
}

func (p *kafkaPipeline) collect(s figure.Samples) {
	stats := p.source.Stats()
	figure.Collect(s, kafkaMetrics, stats)
	decoder := stats.Decoder
	decoder.Packets = stats.Records // including records that were not decoded
	figure.Collect(s, kafkaDecoderMetrics, decoder)
	for _, partition := range stats.Partitions {
		figure.Collect(s, partitionMetrics, partition)
	}
	figure.Collect(s, detectorMetrics, stats.Detector)
	figure.Collect(s, costMetrics, stats.Detector)
	figure.Collect(s, publisherMetrics, p.publishers.stats())
}

func (p *kafkaPipeline) where() slog.Attr {
	return slog.String("brokers", strings.Join(p.brokers, ","))
}

// reportTo implements pipeline.
func (p *kafkaPipeline) reportTo(m *published.Member) {
	stats := p.source.Stats()
	m.Dropped, m.Lost, m.Arrived = refusedSum(&stats.Decoder), lostSum(&stats.Decoder), stats.Decoder.Packets
	m.Waiting = int64(p.publishers.stats().Waiting)
	reportDetector(m, &stats.Detector)
}
