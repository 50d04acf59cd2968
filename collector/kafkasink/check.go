package kafkasink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/hotparam/hotparam/internal/backoff"
)

// Check returns an error if the sink could not send now: if no broker answers and accepts
// the credentials, the topic does not exist or may not be written to, or a leader of its
// partitions cannot be reached at the address that the cluster gives. The error says what
// to do. Check writes nothing, does not wait until Kafka is available, and may be called
// at any time.
func (s *Sink) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*s.cluster.Timeout)
	defer cancel() // breaks all connections
	return check{s.cluster, s.topic, s.cluster.config(ctx)}.run(ctx)
}

type check struct {
	cluster
	topic string
	conf  *sarama.Config
}

func (k check) run(ctx context.Context) error {
	var failures []string
	for _, addr := range k.Brokers {
		b := sarama.NewBroker(addr)
		meta, err := k.ask(b)
		if err != nil {
			_ = b.Close()
			failures = append(failures, fmt.Sprintf("%s: %v", addr, k.diagnose(ctx, addr, err)))
			continue
		}
		err = k.judge(ctx, b, meta)
		_ = b.Close()
		return err
	}
	return fmt.Errorf("kafka: no broker can be used:\n  %s", strings.Join(failures, "\n  "))
}

// ask returns a broker's metadata of the topic, with the operations that are permitted.
func (k check) ask(b *sarama.Broker) (*sarama.MetadataResponse, error) {
	if err := b.Open(k.conf); err != nil {
		return nil, err
	}
	if ok, err := b.Connected(); !ok {
		return nil, err
	}
	versions, err := b.ApiVersions(&sarama.ApiVersionsRequest{})
	if err != nil {
		return nil, err
	}
	if err := k.speaks(versions); err != nil {
		return nil, err
	}
	request := sarama.NewMetadataRequest(k.version, []string{k.topic})
	request.IncludeTopicAuthorizedOperations = true
	return b.GetMetadata(request)
}

// produceKey is the key of the produce request, whose records have headers from the version
// withHeaders on.
const (
	produceKey  = 0
	withHeaders = 3
)

func (k check) speaks(versions *sarama.ApiVersionsResponse) error {
	for _, key := range versions.ApiKeys {
		if key.ApiKey == produceKey && key.MaxVersion < withHeaders {
			return fmt.Errorf("the broker is older than Kafka %s: its records have no headers; use a newer Kafka", oldest)
		}
	}
	return nil
}

// judge returns an error if the topic cannot be written to, by a broker's metadata.
func (k check) judge(ctx context.Context, b *sarama.Broker, meta *sarama.MetadataResponse) error {
	i := slices.IndexFunc(meta.Topics, func(t *sarama.TopicMetadata) bool { return t.Name == k.topic })
	if i < 0 {
		return fmt.Errorf("kafka: the answer of broker %s lacks topic %s; is it Kafka?", b.Addr(), k.topic)
	}
	t := meta.Topics[i]
	switch t.Err {
	case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
	case sarama.ErrUnknownTopicOrPartition:
		return fmt.Errorf("kafka: topic %s does not exist; create it, for example by\n  kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions 12 --config message.timestamp.type=LogAppendTime",
			k.topic, b.Addr(), k.topic)
	case sarama.ErrTopicAuthorizationFailed:
		return k.mayNot("not see topic "+k.topic+", if it exists", b, "--operation Describe --operation Write --topic "+k.topic)
	default:
		return fmt.Errorf("kafka: topic %s: %w", k.topic, explain(t.Err))
	}
	if !may(t.TopicAuthorizedOperations, sarama.AclOperationWrite) {
		return k.mayNot("not write to topic "+k.topic, b, "--operation Write --topic "+k.topic)
	}
	if err := k.leaders(meta, t); err != nil {
		return err
	}
	if k.idempotent {
		return k.idempotently(ctx, b)
	}
	return nil
}

// idempotently returns an error if the cluster gives no id to an idempotent producer. It
// retries, since a cluster that has just started gives none for a moment.
func (k check) idempotently(ctx context.Context, b *sarama.Broker) error {
	end := time.Now().Add(k.Timeout)
	for failures := 0; ; failures++ {
		response, err := b.InitProducerID(&sarama.InitProducerIDRequest{ProducerID: -1, ProducerEpoch: -1})
		if err == nil {
			err = response.Err
		}
		switch {
		case errors.Is(err, sarama.ErrNoError):
			return nil
		case isOneOf(err, sarama.ErrClusterAuthorizationFailed):
			return k.mayNot("not write idempotently", b, "--operation IdempotentWrite --cluster")
		case isOneOf(err, sarama.ErrOffsetsLoadInProgress, sarama.ErrConsumerCoordinatorNotAvailable) && time.Now().Before(end) && ctx.Err() == nil:
			backoff.Wait(ctx, failures, retryAfter, retrySlowly)
			continue
		}
		return fmt.Errorf("kafka: %s gives no id to an idempotent producer: %w", b.Addr(), explain(err))
	}
}

func (k check) mayNot(do string, b *sarama.Broker, rights string) error {
	user := "ANONYMOUS"
	if k.SASL != nil {
		user = k.SASL.User
	} else if k.TLS != nil && k.TLS.Cert != "" {
		user = "CN=…" // of the client certificate
	}
	return fmt.Errorf("kafka: user %s may %s; allow it, for example by\n  kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s %s", user, do, b.Addr(), user, rights)
}

// may reports whether an operation is permitted, or not known to be refused.
func may(rights int32, op sarama.AclOperation) bool {
	const unset = -1 << 31 // brokers older than 2.3 leave it so, or 0
	return rights == unset || rights == 0 || rights&(1<<op) != 0
}

// leaders returns an error if a leader of the topic's partitions cannot be reached at the
// address that the cluster gives.
func (k check) leaders(meta *sarama.MetadataResponse, t *sarama.TopicMetadata) error {
	leads := make(map[int32]bool)
	for _, p := range t.Partitions {
		leads[p.Leader] = true
	}
	for _, b := range meta.Brokers {
		if !leads[b.ID()] {
			continue
		}
		_ = b.Open(k.conf)
		ok, err := b.Connected()
		_ = b.Close()
		if !ok {
			return fmt.Errorf("kafka: the cluster says that broker %d is at %s, where it cannot be reached: %w; see the brokers' advertised.listeners, which must be addresses for this machine, too",
				b.ID(), b.Addr(), err)
		}
	}
	return nil
}

// diagnose adds a probable cause to an error of an address. A broker closes the connection,
// or only waits, if TLS or a login does not match what it expects, so diagnose tries the
// opposite.
func (k check) diagnose(ctx context.Context, addr string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, k.Timeout)
	defer cancel()
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial", hintOf(err) != "" && !hungUp(err):
		return explain(err)
	case k.tls == nil && talksTLS(ctx, addr):
		return fmt.Errorf("%w: this port talks TLS: set tls, or use the port that does not", err)
	case k.tls != nil && k.talksPlainly(ctx, addr):
		return fmt.Errorf("%w: this port does not talk TLS: leave tls out, or use the port that does", err)
	case k.SASL == nil && hungUp(err):
		return fmt.Errorf("%w: the broker hung up, as it does if it wants a log-in: set sasl", err)
	case k.SASL != nil && hungUp(err):
		return fmt.Errorf("%w: the broker hung up at the log-in; see sasl: user and password may be wrong, or the port wants none", err)
	}
	return explain(err)
}

// talksTLS reports whether the port answers a TLS handshake.
func talksTLS(ctx context.Context, addr string) bool {
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nothing is sent
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
		return true
	}
	return isAlert(err)
}

// talksPlainly reports whether the port answers without TLS.
func (k check) talksPlainly(ctx context.Context, addr string) bool {
	bare := k.cluster
	bare.tls, bare.SASL = nil, nil
	b := sarama.NewBroker(addr)
	defer func() { _ = b.Close() }()
	if b.Open(bare.config(ctx)) != nil {
		return false
	}
	_, err := b.ApiVersions(&sarama.ApiVersionsRequest{})
	return err == nil
}
