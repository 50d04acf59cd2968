package aggregator

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
)

// shard is one detector, which owns a part of the keys. A reader that keeps up counts for the
// shards itself: the packets are in its caches, and no goroutine has to be woken. If another
// reader uses the shard, or packets wait in the socket and processors are idle, batches pass
// through a bounded queue to the shard's own goroutine, and return empty.
type shard struct {
	queue   chan *shardBatch
	free    chan *shardBatch
	pending atomic.Int32 // number of batches in the queue or being counted
	stats   atomic.Pointer[DetectorStats]

	mu        sync.Mutex // guards the fields below
	detector  *Detector
	read      []time.Time // by reader, the time before which all packets that reached it have been read
	bounds    []int64     // by rule, the turn of the newest bound
	losses    int64       // turn of the newest loss
	clock     wallClock
	refreshed time.Time
}

// queued is the number of batches that a shard can be behind. When all are in use, the readers
// wait and the sockets' buffers fill. Packets that the system then drops are counted and appear
// as gaps in the senders' sequences. Streams push back on their senders.
const queued = 16

// newShard returns a shard for a number of readers, each of which holds a batch.
func newShard(d *Detector, readers int) *shard {
	s := &shard{
		detector: d, read: make([]time.Time, readers), bounds: make([]int64, len(d.rules)),
		queue: make(chan *shardBatch, queued+readers+1), // and one for a snapshot
		free:  make(chan *shardBatch, queued+readers),
	}
	for range queued + readers {
		s.free <- new(shardBatch)
	}
	s.stats.Store(&DetectorStats{})
	return s
}

// run counts queued batches until the queue is closed and empty. It uses the time of the
// batches. A clock of its own would close panes whose counts still wait in a socket while its
// reader is held up.
func (s *shard) run() {
	for b := range s.queue {
		s.mu.Lock()
		if b.saves != nil {
			b.saves(s.detector)
			s.mu.Unlock()
			s.pending.Add(-1)
			continue
		}
		s.countBatch(b)
		s.mu.Unlock()
		b.reset()
		s.pending.Add(-1)
		s.free <- b // has room for all batches that exist
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeStats()
}

// tryWork counts a batch. It reports false if other batches have to be counted first, since the
// batches of a reader stay in order.
func (s *shard) tryWork(b *shardBatch) bool {
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if s.pending.Load() != 0 {
		return false
	}
	s.countBatch(b)
	return true
}

// lockIdle locks the shard when all queued batches are counted. No more may be queued during
// the call.
func (s *shard) lockIdle() {
	const look = 100 * time.Microsecond
	for {
		s.mu.Lock()
		if s.pending.Load() == 0 {
			return
		}
		s.mu.Unlock()
		time.Sleep(look) // the shard's goroutine counts them in their order
	}
}

// afterQueued makes the shard's goroutine call f when it has counted all queued batches.
func (s *shard) afterQueued(f func(*Detector)) {
	s.pending.Add(1)
	s.queue <- &shardBatch{saves: f} // has room: one at a time
}

// reload puts other rules in force. The caller holds the lock.
func (s *shard) reload(n *decode.Numbered, homes []int, now time.Time) (left []published.Hot) {
	left = s.detector.Reload(n, homes, now)
	for len(s.bounds) < len(s.detector.rules) {
		s.bounds = append(s.bounds, 0)
	}
	return left
}

// inheritHot makes keys hot that another process published.
func (s *shard) inheritHot(hot []published.Hot, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detector.Inherit(hot, now)
}

// storeStats stores the detector's figures for Stats.
func (s *shard) storeStats() {
	stats := s.detector.Stats()
	stats.Reached = s.refreshed
	s.stats.Store(&stats)
}

func (s *shard) countBatch(b *shardBatch) {
	if step := s.clock.forwardStep(time.Now()); step > 0 {
		s.detector.restartShort(b.now, step)
	}
	s.advance(b.reader, b.arrived)
	s.applyBatch(b)
	s.advance(b.reader, b.now)
	if since := b.now.Sub(s.refreshed); since >= time.Second || since < -time.Second {
		s.refreshed = b.now
		s.detector.Refresh()
		s.storeStats()
	}
}

// applyBatch passes the contents of a batch to the detector.
func (s *shard) applyBatch(b *shardBatch) {
	for _, report := range b.before {
		report(s)
	}
	for _, x := range b.excluded {
		s.detector.ExcludeFromGap(x.gap, x.rule, x.hash, x.known)
	}
	s.count(b)
	for _, report := range b.after {
		report(s)
	}
}

// advance records that a reader has read all packets that reached it before now. It moves the
// detector on to the time before which all readers have.
func (s *shard) advance(reader int, now time.Time) {
	s.read[reader] = now
	complete := now
	for _, read := range s.read {
		if read.IsZero() {
			return // the reader has not begun
		}
		if read.Before(complete) {
			complete = read
		} else if read.After(now) {
			now = read
		}
	}
	s.detector.AdvanceTo(now, complete.Add(-s.detector.cfg.Lag))
}

func (s *shard) count(b *shardBatch) {
	next, fetched, start, samples := 0, 0, int32(0), b.samples
	for i := range b.packets {
		p := &b.packets[i]
		end := len(b.counts)
		if i+1 < len(b.packets) {
			end = b.packets[i+1].start
		}
		c := decode.Count{When: p.when, Instance: p.instance, InGroup: p.inGroup, Skew: p.skew}
		for ; next < end; next++ {
			if next == fetched {
				fetched = min(next+fetchAhead, len(b.counts))
				s.detector.fetchBatch(b.counts[next:fetched])
			}
			stored := &b.counts[next]
			c.Rule, c.Hash, c.N, c.Text = int(stored.rule), stored.hash, stored.n, b.text[start:stored.end]
			start = stored.end
			if c.Estimated = len(samples) > 0 && samples[0].index == next; c.Estimated {
				c.Seen, samples = samples[0].seen, samples[1:]
			}
			s.detector.count(&c)
		}
	}
}
