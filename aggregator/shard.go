package aggregator

import (
	"sync/atomic"
	"time"
)

// shard owns a part of the keys: one detector, no lock. As long as the reader
// keeps up it works for the shards itself: what it has just read is in its caches,
// and nobody has to be woken up. When packets wait in the socket, batches go by a
// bounded queue to the shard's own goroutine; their buffers come back when done
// with. The detector is the reader's whenever nothing is pending.
type shard struct {
	detector  *Detector
	queue     chan *batch
	free      chan *batch
	pending   atomic.Int32 // batches that are queued or worked off
	refreshed time.Time
	stats     atomic.Pointer[DetectorStats]
}

// queued is how many batches a shard can be behind. When they are used up the
// reader waits, the socket's buffer fills, and what the system then drops shows
// as gaps in the senders' sequences.
const queued = 16

func newShard(d *Detector) *shard {
	s := &shard{detector: d, queue: make(chan *batch, queued), free: make(chan *batch, queued)}
	for range queued {
		s.free <- new(batch)
	}
	s.stats.Store(&DetectorStats{})
	return s
}

// run works until the queue is closed and empty. What time it is stands in the
// batches: a clock of its own would close panes of which counts still wait in
// the socket when the reader is held up.
func (s *shard) run() {
	defer s.report()
	for b := range s.queue {
		s.work(b)
		b.reset()
		s.pending.Add(-1)
		s.free <- b // has room: there are no more batches than that
	}
}

// report shows the detector's figures to Stats.
func (s *shard) report() {
	stats := s.detector.Stats()
	s.stats.Store(&stats)
}

func (s *shard) work(b *batch) {
	s.detector.Advance(b.arrived)
	for _, h := range b.held {
		s.detector.Held(h.rule, h.n)
	}
	for _, l := range b.losses {
		if l.found {
			s.detector.Found(l.when)
		} else {
			s.detector.Lost(l.when)
		}
	}
	for i := range b.origins {
		s.detector.Origin(b.origins[i])
	}
	for _, h := range b.hidden {
		s.detector.Hidden(h.when, h.n)
	}
	s.count(b)
	s.detector.Advance(b.now)
	if since := b.now.Sub(s.refreshed); since >= time.Second || since < 0 {
		s.refreshed = b.now
		s.detector.Refresh()
		s.report()
	}
}

func (s *shard) count(b *batch) {
	next, fetched, start := 0, 0, int32(0)
	for i := range b.packets {
		p := &b.packets[i]
		end := len(b.counts)
		if i+1 < len(b.packets) {
			end = b.packets[i+1].start
		}
		c := Count{When: p.when, Instance: p.instance}
		for ; next < end; next++ {
			if next == fetched {
				fetched = min(next+fetchAhead, len(b.counts))
				for _, soon := range b.counts[next:fetched] {
					s.detector.fetch(int(soon.rule), soon.hash, 0)
				}
			}
			one := &b.counts[next]
			c.Rule, c.Hash, c.N, c.Text = int(one.rule), one.hash, one.n, b.text[start:one.end]
			start = one.end
			s.detector.count(&c)
		}
	}
}
