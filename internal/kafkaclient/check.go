package kafkaclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/kafka"
)

// Check checks that a program can use a topic of a cluster.
type Check struct {
	Connection *kafka.Connection
	Options    []kgo.Opt // options of its clients, after those of [Options]
	Topic      string
	// Operation has to be permitted on the topic: Read or Write.
	Operation kmsg.ACLOperation
	// More makes further checks, by a broker that answers. A nil More makes none.
	More func(ctx context.Context, b Broker) error

	common []kgo.Opt // result of [Options], which reads files
}

// Run returns an error that says what to do, if no broker answers and accepts the credentials, or
// if the topic does not exist or may not be used. It also returns one if a leader of the topic's
// partitions cannot be reached at the address that the cluster reports. It writes nothing, and does
// not wait until Kafka is available.
func (k *Check) Run(ctx context.Context) error {
	var err error
	if k.common, err = Options(k.Connection); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 4*k.Connection.Timeout)
	defer cancel() // ends all requests
	var failures []any
	for _, addr := range k.Connection.Brokers {
		reached, err := k.runAt(ctx, addr)
		if reached {
			return err
		}
		failures = append(failures, fmt.Errorf("%s: %w", addr, k.diagnose(ctx, addr, err)))
	}
	return fmt.Errorf("kafka: no broker can be used:"+strings.Repeat("\n  %w", len(failures)), failures...)
}

// runAt checks by the answers of the broker at addr, and reports whether the broker answers.
func (k *Check) runAt(ctx context.Context, addr string) (reached bool, err error) {
	b, err := k.broker(ctx, addr)
	if err != nil {
		return false, err
	}
	defer b.Client.Close()
	if err := b.speaks(ctx); err != nil {
		return false, err
	}
	t, others, err := AskTopic(ctx, b, k.Topic)
	if err != nil {
		return false, err
	}
	return true, k.judge(ctx, b, t, others)
}

// Broker is a broker that requests are sent to by its address, and a client of it.
type Broker struct {
	*kgo.Broker
	Client *kgo.Client
	addr   string
	check  *Check
}

// broker returns a broker, whose client the caller closes. It dials on first use.
func (k *Check) broker(ctx context.Context, addr string) (Broker, error) {
	// A broker that has just closed an idle connection is asked again.
	own := []kgo.Opt{kgo.SeedBrokers(addr), kgo.RequestRetries(1), kgo.WithContext(ctx)}
	client, err := kgo.NewClient(slices.Concat(k.common, k.Options, own)...)
	if err != nil {
		return Broker{}, err
	}
	return Broker{client.SeedBrokers()[0], client, addr, k}, nil
}

// speaks returns an error if the broker does not answer, or is too old.
func (b Broker) speaks(ctx context.Context) error {
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, b)
	if err != nil {
		return err
	}
	for _, key := range versions.ApiKeys {
		if key.ApiKey == int16(kmsg.Produce) && key.MaxVersion < withHeaders {
			return errors.New("the broker is older than Kafka 0.11.0: its records have no headers; use a newer Kafka")
		}
	}
	return nil
}

// withHeaders is the first version of the produce request whose records have headers.
const withHeaders = 3

// judge returns an error if, by a broker's metadata, the topic cannot be used.
func (k *Check) judge(ctx context.Context, b Broker, t *kmsg.MetadataResponseTopic, others []kmsg.MetadataResponseBroker) error {
	do, operation := "write to", "--operation Write --topic "+k.Topic
	if k.Operation == kmsg.ACLOperationRead {
		do, operation = "read", "--operation Read --topic "+k.Topic
	}
	switch err := kerr.ErrorForCode(t.ErrorCode); {
	case err == nil, IsOneOf(err, kerr.LeaderNotAvailable):
	case IsOneOf(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("kafka: topic %s does not exist; create it, for example by\n  kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions 12 --config message.timestamp.type=LogAppendTime",
			k.Topic, b.addr, k.Topic)
	case IsOneOf(err, kerr.TopicAuthorizationFailed):
		return b.MayNot("not see topic "+k.Topic+", if it exists", "--operation Describe "+operation)
	default:
		return fmt.Errorf("kafka: topic %s: %w", k.Topic, Explain(err))
	}
	if !May(t.AuthorizedOperations, k.Operation) {
		return b.MayNot("not "+do+" topic "+k.Topic, operation)
	}
	if err := k.leaders(ctx, t, others); err != nil || k.More == nil {
		return err
	}
	return k.More(ctx, b)
}

// MayNot returns the error that the user may "not join a group", say, and how to allow it.
func (b Broker) MayNot(do, rights string) error {
	user, c := "ANONYMOUS", b.check.Connection
	if c.SASL != nil {
		user = c.SASL.User
	} else if c.TLS != nil && c.TLS.Cert != "" {
		user = "CN=…" // that of the client certificate
	}
	return fmt.Errorf("kafka: user %s may %s; allow it, for example by\n  kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s %s", user, do, b.addr, user, rights)
}

// leaders returns an error if a leader of the topic's partitions cannot be reached at the
// address that the cluster reports.
func (k *Check) leaders(ctx context.Context, t *kmsg.MetadataResponseTopic, brokers []kmsg.MetadataResponseBroker) error {
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
func (k *Check) answers(ctx context.Context, addr string) error {
	b, err := k.broker(ctx, addr)
	if err != nil {
		return err
	}
	defer b.Client.Close()
	return b.speaks(ctx)
}

// diagnose adds a probable cause to an error of an address. If TLS or a login does not match
// the broker's expectation, the broker closes the connection or only waits, so diagnose tries
// the opposite.
func (k *Check) diagnose(ctx context.Context, addr string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, k.Connection.Timeout)
	defer cancel()
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial", Hint(err) != "" && !hungUp(err):
		return Explain(err)
	case k.Connection.TLS == nil && talksTLS(ctx, addr):
		return fmt.Errorf("%w: this port talks TLS: set tls, or use the port that does not", err)
	case k.Connection.TLS != nil && k.talksPlainly(ctx, addr):
		return fmt.Errorf("%w: this port does not talk TLS: leave tls out, or use the port that does", err)
	case k.Connection.SASL == nil && hungUp(err):
		return fmt.Errorf("%w: the broker hung up, as it does if it wants a log-in: set sasl", err)
	case k.Connection.SASL != nil && hungUp(err):
		return fmt.Errorf("%w: the broker hung up at the log-in; see sasl: mechanism, user and password may be wrong, or the port wants none", err)
	}
	return Explain(err)
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
func (k *Check) talksPlainly(ctx context.Context, addr string) bool {
	bare := *k.Connection
	bare.TLS, bare.SASL = nil, nil
	opts, err := Options(&bare)
	return err == nil && (&Check{Connection: &bare, common: opts}).answers(ctx, addr) == nil
}
