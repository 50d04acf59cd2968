package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/kafkaclient"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// resize is a change of the topic's number of partitions, with the offsets from which ours are
// read again.
type resize struct {
	size    int
	from    time.Time
	offsets map[int32]int64
}

// sizeEvery is the interval at which the topic's size is checked. While it is unknown, the check
// is repeated after sizeRetry, which doubles up to sizeRetryMost.
const (
	sizeEvery     = 10 * time.Second
	sizeRetry     = 500 * time.Millisecond
	sizeRetryMost = 2 * time.Second
)

// watchSize watches the number of partitions of the topic.
func (s *Source) watchSize(ctx context.Context, client *kgo.Client) {
	var outage loglimit.Outage
	failures := 0
	for {
		pause := sizeEvery
		topic, err := s.describe(ctx, client)
		if err == nil {
			s.noteTopicID(topic.TopicID)
			err = s.noteSize(ctx, client, len(topic.Partitions))
		}
		if ctx.Err() != nil {
			return
		}
		outage.Report(s.cfg.Log, outageEvery, time.Now(), err, loglimit.OutageText{
			Begun: "cannot see the topic; retrying", Over: "seeing the topic again",
		})
		if err != nil {
			pause = base.Backoff(failures, sizeRetry, sizeRetryMost)
			failures++
		} else {
			failures = 0
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.look:
			_ = base.Sleep(ctx, sizeRetry) // all senders report it at once
		}
		timer.Stop()
	}
}

// describe asks a broker for the topic's metadata.
func (s *Source) describe(ctx context.Context, client *kgo.Client) (*kmsg.MetadataResponseTopic, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Connection.Timeout)
	defer cancel()
	topic, _, err := kafkaclient.AskTopic(ctx, client, s.cfg.Topic)
	if err == nil {
		err = kerr.ErrorForCode(topic.ErrorCode)
	}
	if err == nil && len(topic.Partitions) == 0 { // a damaged answer: no topic is empty
		err = errors.New("answer of no partitions")
	}
	if err != nil {
		return nil, fmt.Errorf("describe topic %s: %w", s.cfg.Topic, err)
	}
	return topic, nil
}

// noteSize records the number of partitions. Workers wait for the first one. If the number has
// changed, keys and the homes of rules that are counted in one place may be in other partitions.
// Then each of our partitions is read again.
func (s *Source) noteSize(ctx context.Context, client *kgo.Client, size int) error {
	s.mu.Lock()
	before := s.size
	if before == 0 {
		s.size = size
		close(s.sized)
	}
	s.mu.Unlock()
	if before == 0 || size == before {
		return nil
	}
	client.ForceMetadataRefresh() // so that the group shares the new partitions
	change := resize{size: size, from: time.Now().Add(-s.lookback())}
	times := make(map[int32]int64)
	for _, w := range s.ownedWorkers() {
		times[w.partition] = change.from.UnixMilli()
	}
	var err error
	if change.offsets, err = s.listOffsets(ctx, client, times); err != nil {
		return err
	}
	select {
	case s.resizes <- change:
	case <-ctx.Done():
	}
	return nil
}

// changeSize makes all partitions be read again if the topic has grown. The poll loop calls it
// before the group may move partitions.
func (s *Source) changeSize(ctx context.Context, client *kgo.Client) {
	var change resize
	select {
	case change = <-s.resizes:
	default:
		return
	}
	offsets, replaced := s.replaceAll(ctx, &change)
	if len(replaced) == 0 {
		return
	}
	// The lock must not be held: the group's callbacks take it.
	client.SetOffsets(map[string]map[int32]kgo.EpochOffset{s.cfg.Topic: offsets})
	client.ResumeFetchPartitions(map[string][]int32{s.cfg.Topic: replaced})
}

// replaceAll replaces all workers for the new number of partitions, and returns the offsets at
// which the new ones begin to read.
func (s *Source) replaceAll(ctx context.Context, change *resize) (offsets map[int32]kgo.EpochOffset, replaced []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.size == s.size {
		return nil, nil
	}
	for p, w := range s.workers {
		if _, ok := change.offsets[p]; !ok && !w.isLost.Load() {
			s.askSize() // p was assigned since: try again with it
			return nil, nil
		}
	}
	if mayLog(&s.lines.resized) {
		s.cfg.Log.Info("the number of partitions has changed: all are read again", "topic", s.cfg.Topic, "partitions", change.size)
	}
	s.stats.Resizes.Add(1)
	s.size = change.size
	offsets = make(map[int32]kgo.EpochOffset)
	for p, old := range s.workers {
		if old.isLost.Load() {
			continue
		}
		w := s.newWorker(p, time.Now())
		w.seek = change.from
		if offset := change.offsets[p]; offset >= 0 { // otherwise no record is as new
			offsets[p] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
		s.add(ctx, w)
		replaced = append(replaced, p)
	}
	return offsets, replaced
}

// askSize requests a check of the topic's size.
func (s *Source) askSize() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}

func (s *Source) noteTopicID(id [16]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = id
}

func (s *Source) topicID() [16]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// waitSize waits until the number of partitions is known, and returns it, or 0 if ctx ends
// first.
func (s *Source) waitSize(ctx context.Context) int {
	select {
	case <-s.sized:
	case <-ctx.Done():
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}
