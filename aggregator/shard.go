package aggregator

import (
	"sync/atomic"
	"time"
)

// shard owns a part of the keys: one goroutine, one detector, no lock. Batches
// come by a bounded queue; their buffers go back to the reader when done with.
type shard struct {
	detector *Detector
	queue    chan *batch
	free     chan *batch
	stats    atomic.Pointer[DetectorStats]
}

// queued is how many batches a shard can be behind. When they are used up the
// reader waits, the socket's buffer fills, and what the system then drops shows
// as gaps in the senders' sequences.
const queued = 16

// tick is how often a shard closes panes when nothing else happens.
const tick = 50 * time.Millisecond

// batch is what one read of the source brings a shard. The texts are kept in
// one buffer.
type batch struct {
	now    time.Time
	counts []Count // their texts point into text once it is complete
	ends   []int   // of each count's text
	text   []byte
	hidden []hidden
	lost   []time.Time
}

type hidden struct {
	when time.Time
	n    int64
}

func newShard(d *Detector) *shard {
	s := &shard{detector: d, queue: make(chan *batch, queued), free: make(chan *batch, queued)}
	for range queued {
		s.free <- new(batch)
	}
	s.stats.Store(&DetectorStats{})
	return s
}

// run works until the queue is closed and empty.
func (s *shard) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	defer s.report()
	var refreshed time.Time
	for {
		select {
		case b, ok := <-s.queue:
			if !ok {
				return
			}
			s.work(b)
			s.free <- b // has room: there are no more batches than that
		case now := <-ticker.C:
			if len(s.queue) > 0 {
				continue // what has arrived is counted before panes are closed
			}
			s.detector.Advance(now)
			if now.Sub(refreshed) >= time.Second {
				refreshed = now
				s.detector.Refresh()
				s.report()
			}
		}
	}
}

// report shows the detector's figures to Stats.
func (s *shard) report() {
	stats := s.detector.Stats()
	s.stats.Store(&stats)
}

func (s *shard) work(b *batch) {
	s.detector.Advance(b.now)
	for _, when := range b.lost {
		s.detector.Lost(when)
	}
	for _, h := range b.hidden {
		s.detector.Hidden(h.when, h.n)
	}
	start := 0
	for i, c := range b.counts {
		c.Text = b.text[start:b.ends[i]]
		start = b.ends[i]
		s.detector.Count(c)
	}
}

// spread is the [Handler] that gives each shard its part.
type spread struct {
	shards  []*shard
	batches []*batch
}

func newSpread(shards []*shard) *spread {
	return &spread{shards: shards, batches: make([]*batch, len(shards))}
}

// begin takes an empty batch for each shard; it waits while a shard is behind.
func (s *spread) begin() {
	for i, shard := range s.shards {
		if s.batches[i] != nil {
			continue
		}
		b := <-shard.free
		b.counts, b.ends, b.text = b.counts[:0], b.ends[:0], b.text[:0]
		b.hidden, b.lost = b.hidden[:0], b.lost[:0]
		s.batches[i] = b
	}
}

// end hands the batches over.
func (s *spread) end(now time.Time) {
	for i, b := range s.batches {
		if len(b.counts) > 0 || len(b.hidden) > 0 || len(b.lost) > 0 {
			b.now = now
			s.shards[i].queue <- b // has room: there are no more batches than that
			s.batches[i] = nil
		}
	}
}

// Count implements [Handler].
func (s *spread) Count(c Count) {
	// The detector's index takes the low bits, its cells the middle ones.
	b := s.batches[int(c.Hash>>56)%len(s.batches)]
	b.text = append(b.text, c.Text...)
	b.ends = append(b.ends, len(b.text))
	c.Text = nil
	b.counts = append(b.counts, c)
}

// Hidden implements [Handler].
func (s *spread) Hidden(when time.Time, n int64) {
	for _, b := range s.batches {
		b.hidden = append(b.hidden, hidden{when, n})
	}
}

// Lost implements [Handler].
func (s *spread) Lost(when time.Time) {
	for _, b := range s.batches {
		b.lost = append(b.lost, when)
	}
}
