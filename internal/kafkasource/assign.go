package kafkasource

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// assigned starts a worker for each assigned partition.
func (s *Source) assigned(ctx context.Context, client *kgo.Client, got map[string][]int32) {
	s.stats.Rebalances.Add(1)
	partitions := got[s.cfg.Topic]
	s.dropLost(partitions)
	if len(partitions) == 0 {
		return
	}
	// Partitions stay paused across assignments.
	client.ResumeFetchPartitions(map[string][]int32{s.cfg.Topic: partitions})
	s.stats.Assigned.Add(int64(len(partitions)))
	if mayLog(&s.lines.assigned) {
		s.cfg.Log.Info("partitions assigned", "topic", s.cfg.Topic, "partitions", partitions)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return
	}
	for _, p := range partitions {
		s.add(ctx, s.newWorker(p, time.Now()))
		if s.size > 0 && int(p) >= s.size {
			s.askSize()
		}
	}
	select {
	case s.ask <- struct{}{}: // until the ends are known, nothing of these partitions is published
	default:
	}
}

// add replaces the worker of w's partition by w. The caller holds the lock.
func (s *Source) add(ctx context.Context, w *worker) {
	if old := s.workers[w.partition]; old != nil {
		old.requestStop(false)
		s.ended[w.partition] = old
	}
	w.after = s.ended[w.partition]
	delete(s.ended, w.partition)
	s.workers[w.partition] = w
	s.running[w] = struct{}{}
	w.start(context.WithoutCancel(ctx)) // ended by its end method
}

// seek makes the group's client read from the earliest time whose counts can matter, whatever
// was committed.
func (s *Source) seek(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, partitions := range offsets {
		for p := range partitions {
			from := time.Now().Add(-s.lookback())
			if w := s.workers[p]; w != nil {
				from = w.seek
			}
			partitions[p] = kgo.NewOffset().AfterMilli(from.UnixMilli())
		}
	}
	return offsets, nil
}

// revoked ends the workers of partitions that go to another member, each with a last change, for
// which the group waits a little. Without that change, the next owner's claim fences the worker
// off.
func (s *Source) revoked(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	if ended := s.remove(gone[s.cfg.Topic], true); len(ended) > 0 {
		s.stats.Revoked.Add(int64(len(ended)))
		if mayLog(&s.lines.revoked) {
			s.cfg.Log.Info("partitions revoked", "topic", s.cfg.Topic, "partitions", gone[s.cfg.Topic])
		}
		wait(ended, min(time.Second, s.cfg.Session/2))
	}
}

// onLost handles the loss of the membership: the group and this member have not reached each
// other. Other members may then have the partitions and have fenced us off. Or all brokers are
// unavailable, and no member has them. So our workers stop, and hot keys stay published by
// whichever member may publish them, until the group assigns partitions again.
func (s *Source) onLost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	s.mu.Lock()
	n := int64(0)
	for _, p := range gone[s.cfg.Topic] {
		if w := s.workers[p]; w != nil && !w.isLost.Swap(true) {
			n++
		}
	}
	s.mu.Unlock()
	if n > 0 {
		s.stats.Lost.Add(n)
		if mayLog(&s.lines.lost) {
			s.cfg.Log.Warn("out of the group; partitions are stalled until it joins again", "topic", s.cfg.Topic, "partitions", gone[s.cfg.Topic])
		}
	}
}

// dropLost ends the workers of lost partitions, except those in got. Partitions that were
// assigned again are taken over like those of any other member.
func (s *Source) dropLost(got []int32) {
	var gone []int32
	s.mu.Lock()
	for p, w := range s.workers {
		if w.isLost.Load() && !slices.Contains(got, p) {
			gone = append(gone, p)
		}
	}
	s.mu.Unlock()
	s.remove(gone, false)
}

func (s *Source) remove(partitions []int32, drain bool) (ended []*worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		if w := s.workers[p]; w != nil {
			delete(s.workers, p)
			w.requestStop(drain)
			s.ended[p] = w
			ended = append(ended, w)
		}
	}
	return ended
}

// removeAll removes all workers.
func (s *Source) removeAll() {
	s.mu.Lock()
	partitions := slices.Collect(maps.Keys(s.workers))
	s.mu.Unlock()
	s.remove(partitions, true)
}

// isOut reports whether partitions were lost and the group has not assigned partitions since.
func (s *Source) isOut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.workers {
		if w.isLost.Load() {
			return true
		}
	}
	return false
}

// wait waits until the workers have ended, for at most limit.
func wait(workers []*worker, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, w := range workers {
		select {
		case <-w.done:
		case <-timer.C:
			return
		}
	}
}
