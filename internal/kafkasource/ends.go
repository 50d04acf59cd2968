package kafkasource

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// ends is an answer of a partition's leader: all records that were in the partition at asked
// have offsets below end.
type ends struct {
	asked time.Time
	end   int64
	start int64 // offset of the first record not older than the worker's seek time; -1 if not asked
}

const (
	// endsEvery is the interval at which the leaders are asked. If one did not answer, all are
	// asked again after endsAgain, which doubles up to endsAgainMost. endsTimeout bounds the
	// wait for an answer.
	endsEvery     = 500 * time.Millisecond
	endsAgain     = 200 * time.Millisecond
	endsAgainMost = time.Second
	endsTimeout   = time.Second
	// toEnd asks for a partition's end instead of a time.
	toEnd = -1
)

// watchEnds asks for the ends of our partitions, with one request to each broker that leads some
// of them. A leader that does not answer delays only its own partitions.
func (s *Source) watchEnds(ctx context.Context, client *kgo.Client) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var outage loglimit.Outage
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.ask:
		}
		err := s.askEnds(ctx, client, s.ownedWorkers())
		if ctx.Err() != nil {
			return
		}
		outage.Report(s.cfg.Log, outageEvery, time.Now(), err, loglimit.OutageText{
			Begun: "a leader does not report the ends of its partitions; they are stalled", Over: "all leaders answer again",
		})
		if err != nil {
			s.leaderless.Store(true)
			timer.Reset(base.Backoff(failures, endsAgain, endsAgainMost))
			failures++
			continue
		}
		failures = 0
		s.leaderless.Store(false)
		timer.Reset(endsEvery)
	}
}

// askEnds asks once, and passes the answers to the workers. Workers that do not know their start
// yet get it as well.
func (s *Source) askEnds(ctx context.Context, client *kgo.Client, workers []*worker) error {
	byLeader := make(map[int32][]*worker)
	var failed error
	for _, w := range workers {
		leader, _, err := client.PartitionLeader(s.cfg.Topic, w.partition)
		if err != nil || leader < 0 {
			failed = fmt.Errorf("%s, partition %d: no leader is known: %w", s.cfg.Topic, w.partition, cmp.Or(err, error(kerr.LeaderNotAvailable)))
			client.ForceMetadataRefresh()
			continue
		}
		byLeader[leader] = append(byLeader[leader], w)
	}
	errs := make(chan error, len(byLeader))
	for leader, theirs := range byLeader {
		go func() { errs <- s.askLeader(ctx, client, leader, theirs) }()
	}
	for range byLeader {
		if err := <-errs; err != nil {
			failed = err
			client.ForceMetadataRefresh() // it may no longer lead them
		}
	}
	return failed
}

// askLeader asks one broker for the ends, and where needed the starts, of partitions that it
// leads.
func (s *Source) askLeader(ctx context.Context, client *kgo.Client, leader int32, workers []*worker) error {
	broker := client.Broker(int(leader))
	endsOf, startsOf := make(map[int32]int64), make(map[int32]int64)
	for _, w := range workers {
		endsOf[w.partition] = toEnd
		if w.shown.Load().oldest < 0 {
			startsOf[w.partition] = w.seek.UnixMilli()
		}
	}
	asked := time.Now()
	found, endErr := s.listOffsets(ctx, broker, endsOf)
	// The start is requested last: if no record is new enough by then, none before the end is.
	starts, err := s.listOffsets(ctx, broker, startsOf)
	for _, w := range workers {
		end, ok := found[w.partition]
		if !ok {
			continue
		}
		e := ends{asked: asked, end: end, start: -1}
		if start, ok := starts[w.partition]; ok {
			if e.start = start; start < 0 { // no record is as new
				e.start = end
			}
		}
		w.sendEnds(e)
	}
	return cmp.Or(endErr, err)
}

// sendEnds stores the newest answer for the worker.
func (w *worker) sendEnds(e ends) {
	w.toldAt.Store(time.Now().UnixNano())
	select {
	case <-w.ends: // replace the previous answer, which was not read
	default:
	}
	select {
	case w.ends <- e: // only one goroutine sends
	default:
	}
}

// listOffsets returns, by partition, the offset of the first record that is not older than the
// time in milliseconds, as the leader knows it, or -1 if there is none. It leaves out partitions
// that the leader cannot answer for, and returns the error of one of them.
func (s *Source) listOffsets(ctx context.Context, leader kmsg.Requestor, times map[int32]int64) (map[int32]int64, error) {
	if len(times) == 0 {
		return nil, nil
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = s.cfg.Topic
	for partition, ms := range times {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.Timestamp = partition, -1, ms
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	ctx, cancel := context.WithTimeout(ctx, endsTimeout)
	defer cancel()
	resp, err := req.RequestWith(ctx, leader)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", s.cfg.Topic, err)
	}
	found := make(map[int32]int64, len(times))
	var failed error
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				failed = fmt.Errorf("offsets of %s, partition %d: %w", s.cfg.Topic, p.Partition, err)
				continue
			}
			found[p.Partition] = p.Offset
		}
	}
	return found, failed
}
