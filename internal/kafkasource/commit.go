package kafkasource

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/base"
)

// defaultCommit is the interval at which positions are committed. Until a commit is on the
// replicas, a coordinator answers no member of the group, not even heartbeats. If a broker has
// just died, that takes until its death is noticed, and with a short session every member would
// be thought dead. So commits are rare.
const defaultCommit = time.Minute

// commitPositions commits positions, so that other tools see the group's progress, except while
// a leader is unavailable. It sends its own requests, since the client's commits would delay the
// client's rebalances while a broker is unavailable.
func (s *Source) commitPositions(ctx context.Context, client *kgo.Client) {
	for range base.Ticks(ctx, s.commitEvery) {
		if s.leaderless.Load() {
			continue
		}
		if err := s.commit(ctx, client); err != nil && ctx.Err() == nil {
			s.stats.CommitErrors.Add(1)
		}
	}
}

func (s *Source) commit(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = s.cfg.Group
	req.MemberID, req.Generation = client.GroupMetadata()
	if s.cfg.Member != "" {
		req.InstanceID = &s.cfg.Member
	}
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = s.cfg.Topic
	topic.TopicID = s.topicID() // newer brokers require the ID
	for _, w := range s.ownedWorkers() {
		if position := w.shown.Load().position; position >= 0 {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset = w.partition, position
			topic.Partitions = append(topic.Partitions, p)
		}
	}
	if len(topic.Partitions) == 0 || req.MemberID == "" {
		return nil
	}
	req.Topics = append(req.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Connection.Timeout)
	defer cancel()
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
