package kafkasink

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/kafka"
)

// cluster has the data to reach the cluster, including the files' contents, and to send records.
type cluster struct {
	kafka.Connection
	tls      *tls.Config // nil without TLS
	password string
	versions *kversion.Versions // the newest versions to use

	acks        Acks
	idempotent  bool
	compression Compression
}

// newest has the newest versions of the protocol that are used. They are the last that address
// topics by name, so a topic that was made again is found. All later brokers support them, with the
// same records. For older brokers, older versions are used.
var newest = kversion.V2_7_0()

// oldest is the first version whose records have headers.
const oldest = "0.11.0"

// Versions of the produce request: the first whose records have headers, and the first whose
// records may be compressed by zstd.
const (
	withHeaders = 3
	withZstd    = 7
)

// produceVersion returns the newest version of the produce request in v.
func produceVersion(v *kversion.Versions) int16 {
	n, _ := v.LookupMaxKeyVersion(int16(kmsg.Produce))
	return n
}

func newCluster(c *Config) (cluster, error) {
	k := cluster{
		Connection: c.Connection, versions: newest,
		acks: c.Acks, idempotent: c.Idempotent, compression: c.Compression,
	}
	if version := c.Connection.Version; version != "" {
		v := kversion.FromString(version)
		switch {
		case v == nil:
			return k, fmt.Errorf("Connection.Version %q: want a release of Kafka, as 3.6", version)
		case produceVersion(v) < withHeaders:
			return k, fmt.Errorf("Connection.Version %s is too old: records have headers since %s", version, oldest)
		case produceVersion(v) < produceVersion(newest):
			k.versions = v
		}
	}
	if k.compression == Zstd && produceVersion(k.versions) < withZstd {
		return k, fmt.Errorf("Connection.Version %s has no zstd, which came with 2.1: use Compression: LZ4", c.Connection.Version)
	}
	var err error
	if c.Connection.TLS != nil {
		if k.tls, err = c.Connection.TLS.Config(); err != nil {
			return k, err
		}
	}
	if c.Connection.SASL != nil {
		k.password, err = c.Connection.SASL.Secret()
	}
	return k, err
}

// A record is given up at the age giveUp. Pauses between tries double from retryAfter to
// longestRetry.
const (
	giveUp       = 10 * time.Second
	retryAfter   = 100 * time.Millisecond
	longestRetry = 500 * time.Millisecond
)

// maxBatch bounds a batch to just below the brokers' default maximum.
const maxBatch = 1_000_000

// client returns a client whose requests end when ctx ends. It dials on first use.
func (k *cluster) client(ctx context.Context, seeds []string, more ...kgo.Opt) (*kgo.Client, error) {
	plain := &net.Dialer{Timeout: k.Timeout}
	dial := plain.DialContext
	if k.tls != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: k.tls}).DialContext
	}
	opts := []kgo.Opt{
		kgo.WithContext(ctx),
		kgo.SeedBrokers(seeds...),
		kgo.ClientID(k.ClientID),
		kgo.MaxVersions(k.versions),
		kgo.Dialer(dial),
		kgo.RequestTimeoutOverhead(k.Timeout),
		// A failing request tries each broker once. The caller retries after that.
		kgo.RequestRetries(len(k.Brokers)),
		kgo.RetryBackoffFn(func(failures int) time.Duration { return base.Backoff(failures-1, retryAfter, longestRetry) }),
		kgo.MetadataMinAge(retryAfter),
		kgo.DisableClientMetrics(),
	}
	if k.SASL != nil {
		opts = append(opts, kgo.SASL(k.mechanism()))
	}
	return kgo.NewClient(append(opts, more...)...)
}

func (k *cluster) mechanism() sasl.Mechanism {
	auth := scram.Auth{User: k.SASL.User, Pass: k.password}
	switch k.SASL.Mechanism {
	case kafka.SCRAMSHA256:
		return auth.AsSha256Mechanism()
	case kafka.SCRAMSHA512:
		return auth.AsSha512Mechanism()
	}
	return plain.Auth{User: k.SASL.User, Pass: k.password}.AsMechanism()
}

// producing returns the options of a client that sends records. It sends them at once: records
// that arrive while a request is in flight go into the next one. Records of a partition stay in
// order, since a request is retried before the next one is sent.
func (k *cluster) producing() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(maxBatch),
		kgo.ProduceRequestTimeout(max(k.Timeout/2, minProduceTimeout)),
		kgo.RecordDeliveryTimeout(giveUp),
		kgo.MaxBufferedRecords(math.MaxInt32), // the queue bounds the records
		kgo.ProducerBatchCompression(k.codec()),
	}
	if k.acks == AcksLocal {
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if !k.idempotent {
		return append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	// Counts that are seconds old are of little use: duplicates are better than delays.
	return append(opts, kgo.AllowIdempotentProduceCancellation(), kgo.StopProducerOnDataLossDetected())
}

// minProduceTimeout is the minimum time that the client grants a broker for a request.
const minProduceTimeout = 100 * time.Millisecond

func (k *cluster) codec() kgo.CompressionCodec {
	switch k.compression {
	case Zstd:
		return kgo.ZstdCompression().WithLevel(1)
	case LZ4:
		return kgo.Lz4Compression()
	}
	return kgo.NoCompression()
}
