package kafkasink

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Sink]. Rules and Connection are required.
type Config struct {
	// Rules are the rules that the collector counts by, with the namespace.
	Rules *rules.Rules
	// Connection describes how to reach the cluster. Its certificates are read once, by New, and the
	// password for each connection.
	Connection kafka.Connection
	// Topic is the topic that records are written to. Empty means [wire.DefaultTopic]. It must
	// exist: it is not created automatically.
	Topic string
	// Instance names this process among the senders. Empty means
	// [collector.DefaultInstance].
	Instance string
	// Acks selects when a record counts as delivered: [AcksLocal] or [AcksAll]. Empty means
	// AcksLocal.
	Acks string
	// Idempotent makes the brokers drop records that arrive twice. It needs AcksAll.
	Idempotent bool
	// Compression selects how records are compressed: [Zstd], [LZ4] or [NoCompression]. Empty means
	// Zstd.
	Compression string
	// Buffer bounds the bytes of the records that wait or are in flight. Zero means
	// 16 MiB. A busy instance sends some MB per second.
	Buffer int64
	// Key signs each record, for aggregators that accept only signed ones. It has at
	// least [wire.MinKey] bytes. With a nil Key, records are not signed.
	Key []byte
	// Log receives a line when the cluster cannot be reached and when it can be reached again.
	// A nil Log disables logging. The collector logs whether counts can be sent.
	Log *slog.Logger
}

// defaultBuffer is the default of Config.Buffer.
const defaultBuffer = 16 << 20

// minBuffer has room for two of the largest records.
const minBuffer = 2 * wire.MaxRecord

// Values of Config.Acks, as in settings.
const (
	// AcksLocal waits for the partition's leader. Records that only the leader has are
	// lost if it fails, and leave a gap that the aggregator sees.
	AcksLocal = "1"
	// AcksAll waits for all in-sync replicas.
	AcksAll = "all"
)

// Values of Config.Compression, as in settings. A record of 10 KB takes about 2 KB with zstd, and
// about 3 KB with LZ4.
const (
	Zstd          = "zstd"
	LZ4           = "lz4"
	NoCompression = "none"
)

// topicName matches the names that Kafka accepts.
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (c *Config) validate() error {
	if err := c.Connection.Validate(); err != nil {
		return fmt.Errorf("connection: %w", err)
	}
	switch {
	case c.Rules == nil:
		return errors.New("Config.Rules is missing")
	case !topicName.MatchString(c.Topic) || c.Topic == "." || c.Topic == "..":
		return fmt.Errorf("Config.Topic %q: want 1 to 249 of A-Z a-z 0-9 . _ -, as %s", c.Topic, wire.DefaultTopic)
	case !wire.ValidInstance(c.Instance):
		return fmt.Errorf("Config.Instance %q: want 1 to %d of A-Z a-z 0-9 _ . -", c.Instance, wire.MaxInstance)
	case c.Key != nil && len(c.Key) < wire.MinKey:
		return fmt.Errorf("Config.Key has %d bytes: want %d at least", len(c.Key), wire.MinKey)
	case c.Acks != AcksLocal && c.Acks != AcksAll:
		return fmt.Errorf("Config.Acks %q: want 1 or all", c.Acks)
	case c.Idempotent && c.Acks != AcksAll:
		return errors.New("Config.Idempotent needs Acks: AcksAll; with fewer acks the brokers cannot detect duplicates")
	case c.Compression != Zstd && c.Compression != LZ4 && c.Compression != NoCompression:
		return fmt.Errorf("Config.Compression %q: want zstd, lz4 or none", c.Compression)
	case c.Buffer < minBuffer:
		return fmt.Errorf("Config.Buffer %d: want %d bytes at least, two of the largest records", c.Buffer, minBuffer)
	}
	return nil
}
