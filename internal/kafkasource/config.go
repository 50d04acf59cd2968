package kafkasource

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// PartitionPublisher publishes the hot keys of one partition. A source creates one each time it
// is assigned the partition, and runs it while it has the partition.
type PartitionPublisher interface {
	aggregator.Publisher
	// Adopt takes over the partition's part of the hot set, so that no previous owner can write
	// it. It returns the keys in it, and the time up to which the previous owner had judged the
	// partition's counts, or zero if that is not known. It changes none of the keys. It is
	// called until it succeeds, before all other methods.
	Adopt(ctx context.Context) (hot []published.Hot, judged time.Time, err error)
	// Judged records that all counts from before until have been judged, for the next owner of
	// the partition's part. It must not block.
	Judged(until time.Time)
	// Run publishes until ctx ends, makes a last change and returns.
	Run(ctx context.Context) error
}

// Config configures a [Source]. Connection.Brokers, Rules and Publisher are required. Package config
// has checked the values of a file.
type Config struct {
	Connection kafka.Connection
	// Topic is the topic of the counts. Empty means [wire.DefaultTopic].
	Topic string
	// Group is the consumer group whose members share the partitions. Empty means "hotparam-"
	// and the rules' namespace.
	Group string
	// Member names this source in its group across restarts (static membership): a member that
	// returns within Session gets the same partitions, and no other gets them in between. It
	// must be unique in the group. If it is empty, other members get the partitions when the
	// source ends.
	Member string
	// Session is how long the group waits for a silent member before others get its partitions.
	// Zero means [DefaultSession].
	Session time.Duration
	Rules   *rules.Rules
	// Encoding is the encoding of the senders' keys.
	Encoding wire.Encoding
	// Canonical is passed to the decoders as [decode.Decoder.Canonical].
	Canonical bool
	// Days is the baseline for jumps over days. A nil Days compares with the recent past.
	Days *baseline.Days
	// Memory is the size in bytes of the windows of all partitions of the topic. Zero means
	// [aggregator.DefaultMemory]. Each partition gets an equal part of it, so the total stays
	// within Memory however many partitions this source has.
	Memory int64
	// Trust decides which records are accepted. A nil Trust accepts all. Its caps apply to each
	// partition. [decode.TrustListed] needs addresses, which records do not have.
	Trust *decode.Trust
	// Publisher returns the publisher of a partition.
	Publisher func(partition int32) (PartitionPublisher, error)
	// OnTops receives the keys of a partition that count most, as
	// [aggregator.DetectorConfig.OnTops] does. Nil disables it.
	OnTops func(partition int32, tops []aggregator.Tops)
	// Log logs one line per event and outage. A nil Log disables it.
	Log *slog.Logger
}

// DefaultSession is the default of Config.Session.
const DefaultSession = 10 * time.Second

// grace is how much older than a window a count may be and still be counted. It is also how long a
// slow sender can delay a partition's time. Idle senders are heard each second.
const grace = 5 * time.Second

func (c Config) withDefaults() Config {
	c.Topic = cmp.Or(c.Topic, wire.DefaultTopic)
	c.Group = cmp.Or(c.Group, "hotparam-"+c.Rules.Namespace)
	c.Session = cmp.Or(c.Session, DefaultSession)
	c.Connection = c.Connection.WithDefaults()
	c.Memory = cmp.Or(c.Memory, aggregator.DefaultMemory)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
