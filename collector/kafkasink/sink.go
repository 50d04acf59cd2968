package kafkasink

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// patience is the time that Close waits for records to be delivered.
const patience = time.Second

// Sink is a [collector.Sink] that writes to Kafka.
type Sink struct {
	cluster cluster
	topic   string
	pack    packer
	queue   queue
	tally   deliveryCounts
	reach   reach
	// partitions is the number of the topic's partitions, or 0 if it is not known yet.
	partitions atomic.Int32

	refreshEvery time.Duration
	stallAfter   time.Duration // how long a session may report nothing about a partition's records
	longestPause time.Duration // longest throttle time of a broker that a session obeys
	sessions     chan struct{} // holds one element for each session that has not ended

	start   sync.Once // starts run
	wake    chan struct{}
	closing chan struct{}
	done    chan struct{}
	ctx     context.Context // ends patience after Close
	cancel  context.CancelFunc
	closed  sync.Once
	err     error // result of Close
}

var _ collector.Sink = (*Sink)(nil)

// New returns a sink. It reads the files of certificates and passwords, but starts nothing and
// connects to no broker, so Kafka need not be available; see [Sink.Check].
func New(c Config) (*Sink, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("kafkasink: %w", err)
	}
	cluster, err := newCluster(&c)
	if err != nil {
		return nil, fmt.Errorf("kafkasink: %w", err)
	}
	s := &Sink{
		cluster: cluster, topic: c.Topic, refreshEvery: defaultRefresh,
		stallAfter: giveUp + c.Connection.Timeout, longestPause: time.Second, sessions: make(chan struct{}, maxSessions),
		pack: newPacker(&c),
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	s.queue.limit = c.Buffer
	s.reach.log = c.Log
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func (c Config) withDefaults() Config {
	c.Connection = c.Connection.WithDefaults()
	c.Topic = cmp.Or(c.Topic, wire.DefaultTopic)
	c.Acks, c.Compression = cmp.Or(c.Acks, AcksLocal), cmp.Or(c.Compression, Zstd)
	c.Buffer = cmp.Or(c.Buffer, defaultBuffer)
	c.Instance = cmp.Or(c.Instance, collector.DefaultInstance())
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Send implements [collector.Sink]. The returned Lines and Packets were added to the buffer.
// Failed is the sum of the counts that were not added, and of the counts of earlier Sends that
// have failed since. Err is set as long as records fail.
func (s *Sink) Send(_ context.Context, flush collector.Flush, counts []collector.Count) collector.Sent {
	now := time.Now()
	sent := collector.Sent{}
	if n := s.ready(); n > 0 {
		s.pack.addMissed(&flush)
		s.pack.beginFlush(flush, now, n)
		for i := range counts {
			s.count(&counts[i], &sent)
		}
		for i := range flush.HeldBack {
			s.pack.addHeldBack(&flush.HeldBack[i])
		}
		s.pack.addBeats(len(counts) == 0)
		s.enqueue(&sent)
	} else {
		sum, owed := int64(0), int64(0)
		for i := range counts {
			sum += counts[i].N
		}
		for i := range flush.HeldBack {
			owed += flush.HeldBack[i].N
		}
		s.pack.recordMissed(flush, sum+owed)
		s.tally.fail(&s.tally.stats.Failed.NotConnected, sum, s.reach.sendError(), now)
	}
	sent.Failed, sent.Err = s.tally.takeResult(now)
	return sent
}

func (s *Sink) count(c *collector.Count, sent *collector.Sent) {
	switch s.pack.addCount(c) {
	case lineTooLong:
		s.tally.add(&s.tally.stats.Failed.TooLong, c.N)
		sent.TooLong += c.N
	case lineUnknown:
		s.tally.fail(&s.tally.stats.Failed.NoRule, c.N, fmt.Errorf("kafka: the sink has no rule %q: it was made with other rules than the guard", c.Rule), s.pack.now)
	}
}

// SendOrigins implements [collector.Sink]. A key's origins go to the partition of its counts.
func (s *Sink) SendOrigins(_ context.Context, start time.Time, origins []collector.KeyOrigin) collector.Sent {
	now := time.Now()
	sent := collector.Sent{}
	if n := s.ready(); n > 0 {
		last := &s.pack.flush
		s.pack.beginFlush(collector.Flush{Start: start, Now: start, Held: s.pack.lastHeld(), Opened: last.Opened, Shed: last.Shed}, now, n)
		for i := range origins {
			s.pack.addOrigin(&origins[i])
		}
		s.enqueue(&sent)
	}
	sent.Failed, sent.Err = s.tally.takeResult(now)
	return sent
}

// ready returns the number of partitions, or 0 if records cannot be sent. The first call
// starts run.
func (s *Sink) ready() int {
	select {
	case <-s.closing:
		return 0
	default:
	}
	s.start.Do(func() { go s.run() })
	return int(s.partitions.Load())
}

// enqueue adds the packed records to the queue.
func (s *Sink) enqueue(sent *collector.Sent) {
	for r := range s.pack.sealed(s.topic) {
		sum, lines := r.sum, r.lines
		if !s.queue.push(r) { // push takes ownership of the record
			s.tally.fail(&s.tally.stats.Failed.BufferFull, sum, errFull, s.pack.now)
			r.free()
			continue
		}
		sent.Packets++
		sent.Lines += lines
	}
	base.Notify(s.wake)
}

// Capabilities implements [collector.Sink].
func (s *Sink) Capabilities() collector.Capabilities {
	return collector.Capabilities{Accounts: true, Groups: true, Origins: true}
}

// Fit implements [collector.Sink].
func (s *Sink) Fit(text []byte) []byte { return wire.Plain.Fit(text) }

// Close tries for at most a second to deliver the remaining records, and stops the sink's
// goroutine. The error has the number of counts that were not delivered. After Close, all counts
// that are sent fail. Further calls return the same error.
func (s *Sink) Close() error {
	s.closed.Do(func() {
		s.reach.close()
		close(s.closing)
		s.start.Do(func() { close(s.done) }) // run was never started
		late := time.AfterFunc(patience, s.cancel)
		<-s.done
		late.Stop()
		s.cancel()
		if failed, err := s.tally.takeResult(time.Now()); failed > 0 {
			s.err = fmt.Errorf("kafkasink: %d counts were not delivered: %w", failed, err)
		}
	})
	return s.err
}
