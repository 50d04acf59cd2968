package kafkasink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/base"
)

// Check returns an error if the sink could not send now: no broker answers and accepts the
// credentials, or the topic does not exist or may not be written to. It also returns one if a
// leader of the topic's partitions cannot be reached at the address that the cluster reports.
// The error says what to do. Check writes nothing, does not wait until Kafka is available, and
// may be called at any time.
func (s *Sink) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*s.cluster.Timeout)
	defer cancel() // breaks all connections
	return check{s.cluster, s.topic}.run(ctx)
}

type check struct {
	cluster
	topic string
}

func (k check) run(ctx context.Context) error {
	var failures []string
	for _, addr := range k.Brokers {
		reached, err := k.runAt(ctx, addr)
		if reached {
			return err
		}
		failures = append(failures, fmt.Sprintf("%s: %v", addr, k.diagnose(ctx, addr, err)))
	}
	return fmt.Errorf("kafka: no broker can be used:\n  %s", strings.Join(failures, "\n  "))
}

// runAt checks by the answers of the broker at addr, and reports whether the broker answers.
func (k check) runAt(ctx context.Context, addr string) (reached bool, err error) {
	client, err := k.client(ctx, []string{addr})
	if err != nil {
		return false, err
	}
	defer client.Close()
	b := broker{client.SeedBrokers()[0], addr}
	if err := b.speaks(ctx); err != nil {
		return false, err
	}
	t, others, err := askTopic(ctx, b, k.topic)
	if err != nil {
		return false, err
	}
	return true, k.judge(ctx, b, t, others)
}

// broker is a broker that requests are sent to by its address.
type broker struct {
	*kgo.Broker
	addr string
}

// speaks returns an error if the broker does not answer, or is too old.
func (b broker) speaks(ctx context.Context) error {
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, b)
	if err != nil {
		return err
	}
	for _, key := range versions.ApiKeys {
		if key.ApiKey == int16(kmsg.Produce) && key.MaxVersion < withHeaders {
			return fmt.Errorf("the broker is older than Kafka %s: its records have no headers; use a newer Kafka", oldest)
		}
	}
	return nil
}

// judge returns an error if, by a broker's metadata, the topic cannot be written to.
func (k check) judge(ctx context.Context, b broker, t *kmsg.MetadataResponseTopic, others []kmsg.MetadataResponseBroker) error {
	switch err := kerr.ErrorForCode(t.ErrorCode); {
	case err == nil, isOneOf(err, kerr.LeaderNotAvailable):
	case isOneOf(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("kafka: topic %s does not exist; create it, for example by\n  kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions 12 --config message.timestamp.type=LogAppendTime",
			k.topic, b.addr, k.topic)
	case isOneOf(err, kerr.TopicAuthorizationFailed):
		return k.mayNot("not see topic "+k.topic+", if it exists", b, "--operation Describe --operation Write --topic "+k.topic)
	default:
		return fmt.Errorf("kafka: topic %s: %w", k.topic, explain(err))
	}
	if !may(t.AuthorizedOperations, kmsg.ACLOperationWrite) {
		return k.mayNot("not write to topic "+k.topic, b, "--operation Write --topic "+k.topic)
	}
	if err := k.leaders(ctx, t, others); err != nil {
		return err
	}
	if k.idempotent {
		return k.idempotently(ctx, b)
	}
	return nil
}

// idempotently returns an error if the cluster assigns no id to an idempotent producer. It
// retries, since a cluster that has just started assigns none for a moment.
func (k check) idempotently(ctx context.Context, b broker) error {
	end := time.Now().Add(k.Timeout)
	for failures := 0; ; failures++ {
		request := kmsg.NewPtrInitProducerIDRequest()
		request.ProducerID, request.ProducerEpoch = -1, -1
		response, err := request.RequestWith(ctx, b)
		if err == nil {
			err = kerr.ErrorForCode(response.ErrorCode)
		}
		switch {
		case err == nil:
			return nil
		case isOneOf(err, kerr.ClusterAuthorizationFailed):
			return k.mayNot("not write idempotently", b, "--operation IdempotentWrite --cluster")
		case isOneOf(err, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable) && time.Now().Before(end) && ctx.Err() == nil:
			base.WaitBackoff(ctx, failures, retryAfter, longestRetry)
			continue
		}
		return fmt.Errorf("kafka: %s gives no id to an idempotent producer: %w", b.addr, explain(err))
	}
}

func (k check) mayNot(do string, b broker, rights string) error {
	user := "ANONYMOUS"
	if k.SASL != nil {
		user = k.SASL.User
	} else if k.TLS != nil && k.TLS.Cert != "" {
		user = "CN=…" // that of the client certificate
	}
	return fmt.Errorf("kafka: user %s may %s; allow it, for example by\n  kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s %s", user, do, b.addr, user, rights)
}

// may reports whether an operation is permitted, or not known to be refused.
func may(rights int32, op kmsg.ACLOperation) bool {
	const unset = -1 << 31 // left unset, or 0, by brokers older than 2.3
	return rights == unset || rights == 0 || rights&(1<<op) != 0
}

// leaders returns an error if a leader of the topic's partitions cannot be reached at the
// address that the cluster reports.
func (k check) leaders(ctx context.Context, t *kmsg.MetadataResponseTopic, brokers []kmsg.MetadataResponseBroker) error {
	leads := make(map[int32]bool)
	for _, p := range t.Partitions {
		leads[p.Leader] = true
	}
	for _, b := range brokers {
		if !leads[b.NodeID] {
			continue
		}
		addr := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		if err := k.answers(ctx, addr); err != nil {
			return fmt.Errorf("kafka: the cluster says that broker %d is at %s, where it cannot be reached: %w; see the brokers' advertised.listeners, which must be addresses for this machine, too",
				b.NodeID, addr, err)
		}
	}
	return nil
}

// answers returns an error if no broker answers at the address.
func (k check) answers(ctx context.Context, addr string) error {
	client, err := k.client(ctx, []string{addr})
	if err != nil {
		return err
	}
	defer client.Close()
	return broker{client.SeedBrokers()[0], addr}.speaks(ctx)
}

// diagnose adds a probable cause to an error of an address. If TLS or a login does not match
// the broker's expectation, the broker closes the connection or only waits, so diagnose tries
// the opposite.
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
	return check{cluster: bare}.answers(ctx, addr) == nil
}
