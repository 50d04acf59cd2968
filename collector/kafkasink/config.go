package kafkasink

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/wire"
)

// Config is what a sink needs. Rules and Connection are required.
type Config struct {
	// Rules give each rule's prefix and the namespace.
	Rules *hotparam.Rules
	// Connection is how to reach the cluster. Its files are read once, by New.
	Connection kafka.Connection
	// Topic is where records go; empty: [wire.DefaultTopic]. It must exist: it is
	// not made by being written to.
	Topic string
	// Encoding is how keys are written; the receiver must be set the same.
	Encoding wire.Encoding
	// Instance names this process among the senders; empty: host name and
	// process id.
	Instance string
	// Acks is when a record counts as delivered.
	Acks Acks
	// Idempotent makes the brokers drop what comes twice; it needs AcksAll.
	Idempotent bool
	// Compression of records.
	Compression Compression
	// Buffer bounds the bytes of the records that wait or are on their way; 0:
	// [DefaultBuffer]. At full speed, some MB a second, that is as many seconds.
	Buffer int64
	// Key signs each record, for aggregators that believe nothing else; it has
	// [wire.MinKey] bytes at least. Nil: records are not signed.
	Key []byte
	// Log tells when the cluster is out of reach, and when it is back; nil:
	// nothing. What becomes of counts is for the collector to tell.
	Log *slog.Logger
}

// DefaultBuffer is Config.Buffer by default.
const DefaultBuffer = 16 << 20

// minBuffer holds the largest record.
const minBuffer = 2 * wire.MaxRecord

// Acks is when a record counts as delivered.
type Acks uint8

const (
	// AcksLocal is when the partition's leader has it: what only a broker that
	// dies then had is lost, and shows as a gap.
	AcksLocal Acks = iota
	// AcksAll is when all replicas in sync have it.
	AcksAll
)

// ParseAcks reads "1" or "all"; empty is 1.
func ParseAcks(s string) (Acks, error) {
	switch s {
	case "1", "":
		return AcksLocal, nil
	case "all":
		return AcksAll, nil
	}
	return 0, fmt.Errorf("acks %q: want 1 or all", s)
}

// String is the acks' name in settings.
func (a Acks) String() string {
	if a == AcksAll {
		return "all"
	}
	return "1"
}

// Compression of records.
type Compression uint8

// Compressions. A record of 10 KB becomes about 2 KB by Zstd, 3 KB by LZ4.
const (
	Zstd Compression = iota
	LZ4
	NoCompression
)

var compressions = [...]string{Zstd: "zstd", LZ4: "lz4", NoCompression: "none"}

// ParseCompression reads "zstd", "lz4" or "none"; empty is zstd.
func ParseCompression(s string) (Compression, error) {
	for c, name := range compressions {
		if name == cmp.Or(s, "zstd") {
			return Compression(c), nil
		}
	}
	return 0, fmt.Errorf("compression %q: want zstd, lz4 or none", s)
}

// String is the compression's name in settings.
func (c Compression) String() string {
	if int(c) < len(compressions) {
		return compressions[c]
	}
	return fmt.Sprintf("compression(%d)", int(c))
}

// topicName is what Kafka takes for one.
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
	case c.Acks > AcksAll:
		return fmt.Errorf("Config.Acks %d: want AcksLocal or AcksAll", c.Acks)
	case c.Idempotent && c.Acks != AcksAll:
		return errors.New("Config.Idempotent needs Acks: AcksAll; with less the brokers cannot tell what came twice")
	case int(c.Compression) >= len(compressions):
		return fmt.Errorf("Config.Compression %d: want Zstd, LZ4 or NoCompression", c.Compression)
	case c.Buffer < minBuffer:
		return fmt.Errorf("Config.Buffer %d: want %d bytes at least, two of the largest records", c.Buffer, minBuffer)
	}
	return nil
}
