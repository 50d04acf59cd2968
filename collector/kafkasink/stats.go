package kafkasink

import (
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the sink's counters since it was made, and how things are now.
type Stats struct {
	Records   int64 // delivered, heartbeats among them
	Bytes     int64 // of their values, before compression
	Delivered int64 // counts (the sum of their N) in them
	Failed    Failed

	Buffered   int64 // bytes of records that wait or are on their way
	Waiting    int64 // those records
	Partitions int   // of the topic; 0 until the cluster was reached
	Connected  bool  // the cluster answered when it was last asked
	Replaced   Replaced
	Abandoned  int64 // sessions that did not end in time once they were replaced
}

// Replaced are the sessions with the cluster that were ended to begin another, by
// reason.
type Replaced struct {
	Stalled   int64 // nothing was heard of a record for too long
	OutOfStep int64 // an idempotent producer and a broker did not agree on what comes next
}

// Failed are the counts (the sum of their N) that were not sent, by reason.
type Failed struct {
	BufferFull   int64 // Config.Buffer was full: the brokers are away or slow
	Delivery     int64 // a broker refused the record, or none took it within 10 s
	NotConnected int64 // the partitions were not known yet
	TooLong      int64 // the line fits no record
	NoRule       int64 // the sink was made with other rules than the guard
}

// Sum is all that failed.
func (f Failed) Sum() int64 { return f.BufferFull + f.Delivery + f.NotConnected + f.TooLong + f.NoRule }

// Stats tells the counters. It is safe for concurrent use. Once the sink is
// closed Delivered and Failed together are all that it was given.
func (s *Sink) Stats() Stats {
	t := &s.tally
	bytes, records := s.queue.usage()
	return Stats{
		Records:   t.records.Load(),
		Bytes:     t.bytes.Load(),
		Delivered: t.delivered.Load(),
		Failed: Failed{
			BufferFull:   t.failed[bufferFull].Load(),
			Delivery:     t.failed[delivery].Load(),
			NotConnected: t.failed[notConnected].Load(),
			TooLong:      t.failed[tooLong].Load(),
			NoRule:       t.failed[noRule].Load(),
		},
		Buffered:   bytes,
		Waiting:    int64(records),
		Partitions: s.partitions(),
		Connected:  s.reach.connected(),
		Replaced:   Replaced{Stalled: s.replaced[stalledReason].Load(), OutOfStep: s.replaced[outOfStepReason].Load()},
		Abandoned:  s.abandoned.Load(),
	}
}

// Why a session was replaced.
const (
	stalledReason = iota
	outOfStepReason
	replacements
)

// reason is why counts were not sent.
type reason int

const (
	bufferFull reason = iota
	delivery
	notConnected
	tooLong
	noRule
	reasons
)

// trouble is how long after the last failure the sink is still said to be failing:
// while some records get through and others do not, it is one outage.
const trouble = 5 * time.Second

// tally counts what becomes of counts, and keeps what the next Send is to tell.
type tally struct {
	records, bytes, delivered atomic.Int64
	failed                    [reasons]atomic.Int64

	mu       sync.Mutex
	untold   int64     // that failed since the last Send
	err      error     // of the last failure
	failedAt time.Time // when that was
	okAt     time.Time // when the last record was delivered
}

func (t *tally) deliver(r *record, now time.Time) {
	t.records.Add(1)
	t.bytes.Add(int64(len(r.value)))
	t.delivered.Add(r.mass)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.okAt = now
}

// fail counts what failed. Without counts, as in a heartbeat, it is no trouble.
func (t *tally) fail(why reason, mass int64, err error, now time.Time) {
	if mass == 0 {
		return
	}
	t.failed[why].Add(mass)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.untold += mass
	if err != nil {
		t.err, t.failedAt = err, now
	}
}

// tell is what failed since it was last asked, and the error as long as there is
// trouble.
func (t *tally) tell(now time.Time) (failed int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed, t.untold = t.untold, 0
	if t.err != nil && t.okAt.After(t.failedAt) && now.Sub(t.failedAt) > trouble {
		t.err = nil
	}
	return failed, t.err
}
