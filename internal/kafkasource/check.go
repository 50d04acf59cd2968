package kafkasource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/kafka"
)

// Check returns an error that says why the source cannot work and how to fix it: brokers that
// cannot be reached or refuse us, a missing topic, missing rights. It logs a warning for
// settings that work but may lose counts. It does not join the group.
func (s *Source) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.Connection.Timeout)
	defer cancel()
	var failed lastFailure
	// A metadata request has no deadline other than the client's context.
	client, err := s.connect(kgo.RequestRetries(checkTries), kgo.WithContext(ctx), kgo.WithHooks(&failed))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := s.check(ctx, client); err != nil {
		return s.explain(failed.reason(ctx, err))
	}
	return nil
}

func (s *Source) check(ctx context.Context, client *kgo.Client) error {
	topic, err := describeTopic(ctx, client, s.cfg.Topic, true)
	if err != nil {
		return err
	}
	if !allows(topic.AuthorizedOperations, kmsg.ACLOperationRead) {
		return kerr.TopicAuthorizationFailed
	}
	if err := s.checkGroup(ctx, client); err != nil {
		return err
	}
	if err := s.checkTopic(ctx, client); err != nil {
		s.cfg.Log.Info("the topic's settings are not checked", "topic", s.cfg.Topic, "err", err)
	}
	return nil
}

// lastFailure records the last failure of a client to connect to a broker or to get an answer
// from one. It is a hook of the client.
type lastFailure struct {
	mu  sync.Mutex
	err error
}

// OnBrokerConnect implements [kgo.HookBrokerConnect].
func (f *lastFailure) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	f.record(err)
}

// OnBrokerE2E implements [kgo.HookBrokerE2E].
func (f *lastFailure) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	f.record(e2e.Err())
}

// record keeps err, unless err only says that the client was closed. A timeout does not replace
// an earlier failure, since the end of the context reports it anyway.
func (f *lastFailure) record(err error) {
	if err == nil || isEnd(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || !errors.Is(err, context.DeadlineExceeded) {
		f.err = err
	}
}

// reason returns why a check failed with err. If ctx ended during a further attempt, the client
// returns only how that attempt ended, most often "context canceled". Then the error of ctx and
// the last failure before it say more.
func (f *lastFailure) reason(ctx context.Context, err error) error {
	if ctx.Err() == nil || !isEnd(err) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w; before that: %w", ctx.Err(), f.err)
}

// isEnd reports whether err says that its client was closed.
func isEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, kgo.ErrClientClosed) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "operation was canceled")
}

// checkTries is the number of retries to a broker that does not answer, so that a broker that
// has just died does not prevent the start.
const checkTries = 3

// allows reports whether the rights that a broker reported include op. A broker that reports no
// rights passes the check.
func allows(rights int32, op kmsg.ACLOperation) bool {
	return rights == noRights || rights&(1<<op) != 0
}

// noRights is the value of rights that were not reported.
const noRights = -1 << 31

func (s *Source) checkGroup(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{s.cfg.Group}
	req.IncludeAuthorizedOperations = true
	resp, err := req.RequestWith(ctx, client)
	if isElecting(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range resp.Groups {
		g := &resp.Groups[i]
		switch err := kerr.ErrorForCode(g.ErrorCode); {
		case errors.Is(err, kerr.GroupIDNotFound), isElecting(err): // no member has joined yet
		case err != nil:
			return err
		case !allows(g.AuthorizedOperations, kmsg.ACLOperationRead):
			return kerr.GroupAuthorizationFailed
		}
	}
	return nil
}

// isElecting reports whether the group has no coordinator yet. A new cluster creates its topic
// for groups with the first request.
func isElecting(err error) bool {
	return errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.NotCoordinator)
}

// checkTopic warns of settings that lose counts.
func (s *Source) checkTopic(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, s.cfg.Topic
	resource.ConfigNames = []string{"message.timestamp.type", "retention.ms"}
	req.Resources = append(req.Resources, resource)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return err
		}
		for _, c := range r.Configs {
			if c.Value != nil {
				s.checkSetting(c.Name, *c.Value)
			}
		}
	}
	return nil
}

func (s *Source) checkSetting(name, value string) {
	change := "kafka-configs.sh --bootstrap-server " + s.cfg.Connection.Brokers[0] + " --alter --topic " + s.cfg.Topic + " --add-config "
	switch name {
	case "message.timestamp.type":
		if value != "LogAppendTime" {
			s.cfg.Log.Warn("the topic's records have their senders' times: counts of a sender whose clock is wrong may be placed wrongly",
				"topic", s.cfg.Topic, "hint", change+"message.timestamp.type=LogAppendTime")
		}
	case "retention.ms":
		least := 2 * decode.Lookback(s.inForce.Load().Rules)
		if ms, err := strconv.ParseInt(value, 10, 64); err == nil && ms >= 0 && ms < least.Milliseconds() {
			s.cfg.Log.Warn("the topic keeps records for less than twice the longest window: after a rebalance counts may be missing",
				"topic", s.cfg.Topic, "retention", time.Duration(ms)*time.Millisecond, "least", least,
				"hint", change+"retention.ms="+strconv.FormatInt(least.Milliseconds(), 10))
		}
	}
}

// explain adds the meaning of an error of the brokers, and what to do.
func (s *Source) explain(err error) error {
	if why, ok := refused(err, &s.cfg); ok {
		return fmt.Errorf("kafka source: %s: %w", why, err)
	}
	brokers := strings.Join(s.cfg.Connection.Brokers, ", ")
	var first *kgo.ErrFirstReadEOF
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var dial *net.OpError
	why := "brokers " + brokers
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		why = fmt.Sprintf("topic %s does not exist; make it: kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions 12 --replication-factor 3 --config message.timestamp.type=LogAppendTime --config retention.ms=%d",
			s.cfg.Topic, s.cfg.Connection.Brokers[0], s.cfg.Topic, max(time.Hour, 2*s.lookback()).Milliseconds())
	case errors.As(err, &record):
		why = "brokers " + brokers + " do not speak TLS at this port: use their TLS port, or leave tls out"
	case errors.As(err, &authority):
		why = "the brokers' certificate is of an authority that is not known: give it as tls ca"
	case errors.As(err, &host):
		why = "the brokers' certificate is for another name: give it as tls server_name"
	case errors.As(err, &dial) && dial.Op == "remote error": // crypto/tls's name for an alert
		why = "the brokers refuse our certificate, or that there is none: give it as tls cert and key"
	case errors.As(err, &first), errors.Is(err, io.EOF):
		why = "brokers " + brokers + " closed the connection at once: " + closedBy(&s.cfg.Connection)
	case errors.As(err, &dial) && dial.Op == "dial":
		why = "no broker answers at " + brokers + ": is the address right, and does Kafka run"
	case errors.Is(err, context.DeadlineExceeded):
		why = fmt.Sprintf("no broker of %s answered within %v: is the address right, and does the port speak %s", brokers, 2*s.cfg.Connection.Timeout, speech(s.cfg.Connection.TLS != nil))
	}
	return fmt.Errorf("kafka source: %s: %w", why, err)
}

// closedBy returns the possible reasons why a broker closed a connection without an answer.
func closedBy(c *kafka.Connection) string {
	why := "they may want tls"
	if c.TLS != nil {
		why = "they may speak no TLS at this port, or want our certificate (tls cert and key)"
	}
	if c.SASL != nil {
		return why + ", or not take the mechanism or the password of user " + c.SASL.User
	}
	return why + ", or sasl"
}

func speech(private bool) string {
	if private {
		return "TLS"
	}
	return "plaintext, not TLS"
}

// refused returns why the brokers refuse us, and false if err is not a refusal. After a refusal
// there is no use in waiting.
func refused(err error, c *Config) (why string, ok bool) {
	user := "this program"
	if c.Connection.SASL != nil {
		user = "user " + c.Connection.SASL.User
	}
	switch {
	case err == nil:
		return "", false
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the brokers do not take the password of " + user, true
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "the brokers do not take this sasl mechanism", true
	case errors.Is(err, kerr.IllegalSaslState):
		return "the brokers want no sasl at this port, or another sort", true
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf("%s may not read topic %s: it needs READ and DESCRIBE on it", user, c.Topic), true
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return fmt.Sprintf("%s may not join group %s: it needs READ on it", user, c.Group), true
	case errors.Is(err, kerr.InvalidSessionTimeout):
		return fmt.Sprintf("the brokers do not take a session of %v: it must be within their group.min.session.timeout.ms (6 s) and group.max.session.timeout.ms", c.Session), true
	case errors.Is(err, kerr.FencedInstanceID):
		return fmt.Sprintf("another member of group %s has the name %s: each needs its own", c.Group, c.Member), true
	case errors.Is(err, kerr.InconsistentGroupProtocol):
		return fmt.Sprintf("group %s has members of another program: give this one a group of its own", c.Group), true
	}
	return "", false
}

// outageEvery is the least time between two log lines about outages of one kind, each with its
// end, however often they occur.
const outageEvery = 10 * time.Second

// mayLog reports whether one more line of a kind may be logged. All partitions together may log
// ten lines at once, then one a second.
func mayLog(lines *loglimit.Limit) bool {
	_, ok := lines.Allow(loglimit.LineRate{Burst: 10, Every: time.Second}, time.Now())
	return ok
}
