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

// sizeEvery is the interval at which the topic's size is checked. While it is unknown, the check
// is repeated after sizeRetry, which doubles up to sizeRetryMost.
const (
	sizeEvery     = 10 * time.Second
	sizeRetry     = 500 * time.Millisecond
	sizeRetryMost = 2 * time.Second
)

// errResized ends a client when the topic has another number of partitions. Keys, and the homes of
// rules that are counted in one place, may then be in other partitions, so the next client reads
// all partitions again.
var errResized = errors.New("kafka source: the topic has another number of partitions")

// watchSize watches the number of partitions of the topic, and calls end when it has changed.
func (s *Source) watchSize(ctx context.Context, client *kgo.Client, end context.CancelCauseFunc) {
	var outage loglimit.Outage
	failures := 0
	for {
		pause := sizeEvery
		topic, err := s.describe(ctx, client)
		if err == nil {
			if n := len(topic.Partitions); s.recordTopic(topic.TopicID, n) {
				s.stats.Resizes.Add(1)
				if mayLog(&s.lines.resized) {
					s.cfg.Log.Info("the number of partitions has changed: all are read again", "topic", s.cfg.Topic, "partitions", n)
				}
				end(errResized)
			}
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

// recordTopic records the topic's ID and number of partitions, and reports whether the number has
// changed. Workers wait for the first one.
func (s *Source) recordTopic(id [16]byte, size int) (resized bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.size
	s.id, s.size = id, size
	if before == 0 {
		close(s.sized)
	}
	return before != 0 && before != size
}

// askSize requests a check of the topic's size.
func (s *Source) askSize() {
	select {
	case s.look <- struct{}{}:
	default:
	}
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
