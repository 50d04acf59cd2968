package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/kafkaclient"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Check returns an error that says why the source cannot work and how to fix it: brokers that
// cannot be reached or refuse us, a missing topic, missing rights. It logs a warning for
// settings that work but may lose counts. It does not join the group.
func (s *Source) Check(ctx context.Context) error {
	c := kafkaclient.Check{Connection: &s.cfg.Connection, Options: s.extra, Topic: s.cfg.Topic, Operation: kmsg.ACLOperationRead, More: func(ctx context.Context, b kafkaclient.Broker) error {
		if err := s.checkGroup(ctx, b); err != nil {
			return err
		}
		if err := s.checkTopic(ctx, b.Client); err != nil {
			s.cfg.Log.Info("the topic's settings are not checked", "topic", s.cfg.Topic, "err", err)
		}
		return nil
	}}
	return c.Run(ctx)
}

func (s *Source) checkGroup(ctx context.Context, b kafkaclient.Broker) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{s.cfg.Group}
	req.IncludeAuthorizedOperations = true
	resp, err := req.RequestWith(ctx, b.Client)
	permitted := true
	for i := 0; err == nil && i < len(resp.Groups); i++ {
		g := &resp.Groups[i]
		err = kerr.ErrorForCode(g.ErrorCode)
		permitted = kafkaclient.May(g.AuthorizedOperations, kmsg.ACLOperationRead)
	}
	switch {
	case errors.Is(err, kerr.GroupIDNotFound), isElecting(err): // no member has joined yet
		return nil
	case errors.Is(err, kerr.GroupAuthorizationFailed), err == nil && !permitted:
		return b.MayNot("not join group "+s.cfg.Group, "--operation Read --group "+s.cfg.Group)
	case err != nil:
		return fmt.Errorf("kafka: group %s: %w", s.cfg.Group, kafkaclient.Explain(err))
	}
	return nil
}

// isElecting reports whether the group has no coordinator yet. A new cluster creates its topic
// for groups with the first request.
func isElecting(err error) bool {
	return kafkaclient.IsOneOf(err, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator)
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

// refused returns why the brokers refuse us, and false if err is not a refusal. After a refusal
// there is no use in waiting.
func refused(err error, c *Config) (why string, ok bool) {
	switch {
	case kafkaclient.IsOneOf(err, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState, kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed):
		return kafkaclient.Hint(err), true
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
