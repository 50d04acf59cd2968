package kafkasource

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// defaultCommit is how often what has been counted is committed. A coordinator
// answers nobody of the group, heartbeats neither, until a commit is on the
// replicas. If a broker has just died that takes as long as it takes to be noticed,
// and with a short session every member would be thought dead: so commits are few.
const defaultCommit = time.Minute

// commitPositions commits what has been counted, for other tools to see how far
// the group is, and not while a leader is away. It does so by requests of its own:
// the client's commits would hold up its rebalances while a broker is away.
func (s *Source) commitPositions(ctx context.Context, client *kgo.Client) {
	ticker := time.NewTicker(s.commitEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.leaderless.Load() {
				continue
			}
			if err := s.commit(ctx, client); err != nil && ctx.Err() == nil {
				s.stats.CommitErrors.Add(1)
			}
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
	topic.TopicID = s.topicID() // newer brokers want that
	for _, w := range s.present() {
		if at := w.shown.Load().position; at >= 0 {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset = w.partition, at
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
