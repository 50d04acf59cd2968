package kafkasource

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

// show publishes the worker's state for Stats.
func (w *worker) show() {
	r := w.report
	r.position, r.oldest, r.complete, r.sure = w.position, w.oldest, w.mark.complete, w.mark.sure
	r.decoder, r.detector = w.decoder.Stats(), w.detector.Stats()
	w.shown.Store(&r)
}

// retire adds the counters of a worker that has ended to those of the past. Its gauges are
// dropped: all figures of the decoder's senders and of the detector but those named here.
func (s *Source) retire(w *worker) {
	r := w.shown.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, w)
	r.decoder.Senders, r.decoder.Late, r.decoder.Off = 0, decode.LateSenders{}, decode.OffClocks{}
	s.past.decoder.Merge(&r.decoder)
	s.past.detector.Merge(&aggregator.DetectorStats{DetectorCounters: aggregator.DetectorCounters{
		Evicted: r.detector.Evicted, NoRoom: r.detector.NoRoom, Late: r.detector.Late,
	}})
}

// Stats returns the counters and the state.
func (s *Source) Stats() Stats {
	all := Stats{Counters: base.LoadCounters[Counters[int64]](&s.stats)}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	all.Decoder.Merge(&s.past.decoder)
	all.Detector.Merge(&s.past.detector)
	for w := range s.running {
		r := w.shown.Load()
		all.Decoder.Merge(&r.decoder)
		all.Detector.Merge(&r.detector)
		if s.workers[w.partition] == w {
			all.Partitions = append(all.Partitions, r.stats(w.partition, now))
		}
	}
	slices.SortFunc(all.Partitions, func(a, b PartitionStats) int { return cmp.Compare(a.Partition, b.Partition) })
	return all
}

func (r *report) stats(partition int32, now time.Time) PartitionStats {
	p := PartitionStats{
		Partition: partition, Position: r.position, End: r.end, Records: -1,
		Covered: r.covered, Adopted: r.adopted,
		Frozen: r.completeMoved.IsZero() || now.Sub(r.completeMoved) > frozenAfter,
		Unread: r.sure.IsZero() || now.Sub(r.sure) > frozenAfter,
	}
	if r.position >= 0 && r.end >= 0 {
		p.Records = max(0, r.end-r.position)
	}
	if !r.newest.IsZero() {
		p.Delay = max(0, now.Sub(r.newest))
	}
	if !r.complete.IsZero() {
		p.Behind = max(0, now.Sub(r.complete))
	}
	return p
}
