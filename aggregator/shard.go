package aggregator

import (
	"github.com/hotparam/hotparam/aggregator/decode"
	"sync"
	"sync/atomic"
	"time"
)

// shard owns a part of the keys: one detector. As long as a reader keeps up it works
// for the shards itself: what it has just read is in its caches, and nobody has to be
// woken up. When packets wait in the socket, or another reader is at work in the
// shard, batches go by a bounded queue to the shard's own goroutine; their buffers
// come back when done with.
type shard struct {
	queue   chan *batch
	free    chan *batch
	pending atomic.Int32 // batches that are queued or worked off
	stats   atomic.Pointer[DetectorStats]

	mu        sync.Mutex // guards what follows
	detector  *Detector
	read      []time.Time // by reader: it has brought all that came to it before
	bounds    []int64     // by rule: the turn of the newest bound
	losses    int64       // the turn of the newest loss
	refreshed time.Time
}

// queued is how many batches a shard can be behind. When they are used up the
// readers wait, the sockets' buffers fill, and what the system then drops is counted
// and shows as gaps in the senders' sequences; streams push back on their senders.
const queued = 16

// newShard makes a shard for a number of readers, each of which holds a batch.
func newShard(d *Detector, readers int) *shard {
	s := &shard{
		detector: d, read: make([]time.Time, readers), bounds: make([]int64, len(d.rules)),
		queue: make(chan *batch, queued+readers), free: make(chan *batch, queued+readers),
	}
	for range queued + readers {
		s.free <- new(batch)
	}
	s.stats.Store(&DetectorStats{})
	return s
}

// run works until the queue is closed and empty. What time it is stands in the
// batches: a clock of its own would close panes of which counts still wait in
// a socket when its reader is held up.
func (s *shard) run() {
	for b := range s.queue {
		s.mu.Lock()
		s.work(b)
		s.mu.Unlock()
		b.reset()
		s.pending.Add(-1)
		s.free <- b // has room: there are no more batches than that
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report()
}

// tryWork works off a batch unless others are before it: those of one reader stay in
// their order.
func (s *shard) tryWork(b *batch) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if s.pending.Load() != 0 {
		return false
	}
	s.work(b)
	return true
}

// report shows the detector's figures to Stats.
func (s *shard) report() {
	stats := s.detector.Stats()
	s.stats.Store(&stats)
}

func (s *shard) work(b *batch) {
	s.advance(b.reader, b.arrived)
	s.hear(b)
	for i := range b.origins {
		s.detector.Origin(b.origins[i])
	}
	for i := range b.heldBack {
		s.detector.HeldBack(b.heldBack[i])
	}
	for _, h := range b.hidden {
		s.detector.Hidden(h.when, h.n)
	}
	s.count(b)
	for i := range b.healed {
		s.detector.Healed(b.healed[i].Count, b.healed[i].until)
	}
	for i := range b.moved {
		s.detector.Moved(b.moved[i].Count, b.moved[i].from, b.moved[i].to)
	}
	s.advance(b.reader, b.now)
	if since := b.now.Sub(s.refreshed); since >= time.Second || since < -time.Second {
		s.refreshed = b.now
		s.detector.Refresh()
		s.report()
	}
}

// advance takes up to when a reader has brought all that came to it. Only what all
// have brought is complete: one that lags finds its panes open.
func (s *shard) advance(reader int, now time.Time) {
	s.read[reader] = now
	complete := now
	for _, read := range s.read {
		if read.IsZero() {
			return // it has not begun
		}
		if read.Before(complete) {
			complete = read
		} else if read.After(now) {
			now = read
		}
	}
	s.detector.AdvanceTo(now, complete.Add(-s.detector.lag))
}

// hear takes what the decoders know of what is missing. Each tells what it is by then,
// so what was overtaken by a later word of another reader is nothing any more.
func (s *shard) hear(b *batch) {
	for i := range b.missing {
		s.detector.Missing(b.missing[i])
	}
	for _, x := range b.spared {
		s.detector.Spare(x.gap, x.rule, x.hash, x.known)
	}
	for _, h := range b.held {
		if h.turn > s.bounds[h.rule] {
			s.bounds[h.rule] = h.turn
			s.detector.Held(h.rule, h.n, h.untold)
		}
	}
	for _, l := range b.losses {
		if l.turn <= s.losses {
			continue
		}
		if s.losses = l.turn; l.found {
			s.detector.Found(l.when)
		} else {
			s.detector.Lost(l.when)
		}
	}
}

func (s *shard) count(b *batch) {
	next, fetched, start, samples := 0, 0, int32(0), b.samples
	for i := range b.packets {
		p := &b.packets[i]
		end := len(b.counts)
		if i+1 < len(b.packets) {
			end = b.packets[i+1].start
		}
		c := decode.Count{When: p.when, Instance: p.instance, InGroup: p.inGroup}
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
			if c.Estimated = len(samples) > 0 && samples[0].at == next; c.Estimated {
				c.Seen, samples = samples[0].seen, samples[1:]
			}
			s.detector.count(&c)
		}
	}
}
