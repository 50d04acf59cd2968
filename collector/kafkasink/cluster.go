package kafkasink

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/IBM/sarama"
	"github.com/hotparam/hotparam/internal/backoff"
	"github.com/hotparam/hotparam/kafka"
	"github.com/xdg-go/scram"
)

// cluster is how to reach the cluster, with the files read, and how to send records.
type cluster struct {
	kafka.Connection
	tls      *tls.Config // nil without
	password string
	version  sarama.KafkaVersion

	acks        Acks
	idempotent  bool
	compression Compression
	throttleCap time.Duration // the longest throttle time to obey
}

// newest is the newest version of the protocol that is used: the last in which the answer
// to a produce request ends with the throttle time, where answers.go can cap it. All later
// brokers support it, with the same records. With older brokers older versions are used.
var newest = sarama.V2_7_0_0

// oldest is the first version whose records have headers.
var oldest = sarama.V0_11_0_0

func newCluster(c *Config) (cluster, error) {
	k := cluster{
		Connection: c.Connection, version: newest,
		acks: c.Acks, idempotent: c.Idempotent, compression: c.Compression, throttleCap: throttleCap,
	}
	if c.Connection.Version != "" {
		v, err := parseVersion(c.Connection.Version)
		if err != nil {
			return k, err
		}
		if !v.IsAtLeast(newest) {
			k.version = v
		}
	}
	if k.compression == Zstd && !k.version.IsAtLeast(sarama.V2_1_0_0) {
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

// parseVersion parses a version, such as 3.6 or 3.6.0; sarama parses only the latter.
func parseVersion(s string) (sarama.KafkaVersion, error) {
	v, err := sarama.ParseKafkaVersion(s)
	if err != nil {
		v, err = sarama.ParseKafkaVersion(s + ".0")
	}
	switch {
	case err != nil:
		return v, fmt.Errorf("Connection.Version %q: want a release of Kafka, as 3.6", s)
	case !v.IsAtLeast(oldest):
		return v, fmt.Errorf("Connection.Version %s is too old: records have headers since %s", s, oldest)
	}
	return v, nil
}

// A record is given up at the age giveUp. Pauses between tries double from retryAfter to
// retrySlowly, so that tries of them take about giveUp. If each try takes a timeout, all
// take longer; the partition's next records then expire in the queue.
const (
	giveUp      = 10 * time.Second
	retryAfter  = 100 * time.Millisecond
	retrySlowly = 500 * time.Millisecond
	tries       = 30
)

// config returns sarama's configuration for a client whose connections break when ctx
// ends.
func (k *cluster) config(ctx context.Context) *sarama.Config {
	c := sarama.NewConfig()
	c.ClientID, c.Version = k.ClientID, k.version
	c.MetricRegistry = newSilent()
	c.ChannelBufferSize = 2 * window

	c.Net.DialTimeout, c.Net.ReadTimeout, c.Net.WriteTimeout = k.Timeout, k.Timeout, k.Timeout
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, dialer{ctx, net.Dialer{Timeout: k.Timeout}, k.tls, k.throttleCap}
	// One at a time: with more, a batch that is tried again could arrive after a later
	// one of its partition. Records that come meanwhile go into one batch.
	c.Net.MaxOpenRequests = 1
	if s := k.SASL; s != nil {
		c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password = true, s.User, k.password
		c.Net.SASL.Mechanism = sarama.SASLMechanism(s.Mechanism)
		switch s.Mechanism {
		case kafka.SCRAMSHA256:
			c.Net.SASL.SCRAMClientGeneratorFunc = newScram(scram.SHA256)
		case kafka.SCRAMSHA512:
			c.Net.SASL.SCRAMClientGeneratorFunc = newScram(scram.SHA512)
		}
	}

	// The client asks once and returns the error; patient does the waiting.
	c.Metadata.Full, c.Metadata.AllowAutoTopicCreation = false, false
	c.Metadata.RefreshFrequency, c.Metadata.Retry.Max = 0, 0

	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Return.Successes, c.Producer.Return.Errors = true, true
	c.Producer.MaxMessageBytes = 1_000_000 // of a batch; just below the brokers' default maximum
	c.Producer.Timeout = k.Timeout - k.Timeout/5
	c.Producer.Retry.Max = tries
	c.Producer.Retry.BackoffFunc = func(failures, _ int) time.Duration {
		backoff.Wait(ctx, failures, retryAfter, retrySlowly) // here, since sarama's own sleep ignores Close
		return 0
	}
	c.Producer.Transaction.Retry.Max = 0 // of getting a producer id: connect is retried as a whole
	c.Producer.RequiredAcks = sarama.WaitForLocal
	if k.acks == AcksAll {
		c.Producer.RequiredAcks = sarama.WaitForAll
	}
	c.Producer.Idempotent = k.idempotent
	switch k.compression {
	case Zstd:
		c.Producer.Compression, c.Producer.CompressionLevel = sarama.CompressionZSTD, 1
	case LZ4:
		c.Producer.Compression = sarama.CompressionLZ4
	}
	return c
}

// dialer makes connections that break when ctx ends, since sarama's calls have no context.
// It also does TLS, since answers.go has to read the plain answers.
type dialer struct {
	ctx context.Context
	net.Dialer
	tls         *tls.Config // nil without
	throttleCap time.Duration
}

func (d dialer) Dial(network, addr string) (net.Conn, error) {
	dial := d.DialContext
	if d.tls != nil {
		dial = (&tls.Dialer{NetDialer: &d.Dialer, Config: d.tls}).DialContext
	}
	c, err := dial(d.ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{
		answers: answers{Conn: c, limit: d.throttleCap, asks: make(map[uint32]request)},
		stop:    context.AfterFunc(d.ctx, func() { _ = c.Close() }),
	}, nil
}

type conn struct {
	answers
	stop func() bool
}

func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}
