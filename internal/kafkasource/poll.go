package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

const (
	// pollRecords bounds the records of one poll.
	pollRecords = 10_000
	// pollFor bounds one poll, so that partitions can be reassigned.
	pollFor = 250 * time.Millisecond

	// firstPause and lastPause bound the wait after polls that end early without records. An
	// error of a partition that the client does not retry ends each poll at once.
	firstPause = time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// poll passes the records of the brokers to the workers until ctx ends.
func (s *Source) poll(ctx context.Context, client *kgo.Client) error {
	var outage loglimit.Outage
	futile := 0 // polls in a row that ended early and brought nothing
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(ctx, pollFor)
		fetches := client.PollRecords(one, pollRecords)
		early := one.Err() == nil
		cancel()
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { s.dispatch(ctx, client, &p) })
		client.AllowRebalance()
		err := s.trouble(fetches)
		if why, ok := refused(err, &s.cfg); ok {
			return fmt.Errorf("kafka source: %s: %w", why, err)
		}
		if err != nil {
			s.stats.FetchErrors.Add(1)
		}
		if err != nil || fetches.NumRecords() > 0 {
			outage.Report(s.cfg.Log, outageEvery, time.Now(), err, loglimit.OutageText{
				Begun: "cannot read counts; retrying", Over: "reading counts again",
			})
		}
		if fetches.NumRecords() > 0 || !early {
			futile = 0
			continue
		}
		base.WaitBackoff(ctx, futile, firstPause, lastPause)
		futile++
	}
	return nil
}

// trouble returns the first real error of a poll.
func (s *Source) trouble(fetches kgo.Fetches) (err error) {
	fetches.EachError(func(topic string, partition int32, e error) {
		var lost *kgo.ErrDataLoss
		if err != nil || errors.As(e, &lost) || errors.Is(e, context.DeadlineExceeded) || errors.Is(e, context.Canceled) {
			return
		}
		err = fmt.Errorf("topic %q, partition %d: %w", topic, partition, e)
	})
	return err
}

// dispatch passes a batch to its worker. If too many batches of a partition wait, it is not
// fetched until they are worked off. The other partitions continue.
func (s *Source) dispatch(ctx context.Context, client *kgo.Client, p *kgo.FetchTopicPartition) {
	b := batch{records: p.Records, logStart: p.LogStartOffset}
	if !errors.As(p.Err, &b.lost) && len(b.records) == 0 {
		return
	}
	s.mu.Lock()
	w := s.workers[p.Partition]
	s.mu.Unlock()
	if w == nil || w.isLost.Load() {
		return // it is another member's by now
	}
	select {
	case w.queue <- b: // blocks only if a partition is fetched from two brokers
	case <-w.done:
		return
	case <-ctx.Done():
		return
	}
	if len(w.queue) < queued/2 {
		return
	}
	client.PauseFetchPartitions(s.partitionMap(w.partition))
	w.paused.Store(client)
	s.stats.Pauses.Add(1)
	w.resume() // it may have worked them off in between
}

// resume lets the partition be fetched again when few batches wait.
func (w *worker) resume() {
	if client := w.paused.Load(); client != nil && len(w.queue) <= 1 && w.paused.CompareAndSwap(client, nil) {
		client.ResumeFetchPartitions(w.source.partitionMap(w.partition))
	}
}

// partitionMap returns one partition in the client's form.
func (s *Source) partitionMap(partition int32) map[string][]int32 {
	return map[string][]int32{s.cfg.Topic: {partition}}
}
