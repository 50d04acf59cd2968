package kafkasink

import (
	"sync"
	"time"
)

// Stats are a sink's state, and its counters since it was made.
type Stats struct {
	Records   int64 // delivered records, heartbeats included
	Bytes     int64 // size of the records' values, before compression
	Delivered int64 // sum of the records' counts
	Failed    Failed

	Buffered   int64 // bytes of records that wait or are in flight
	Waiting    int64 // number of these records
	Partitions int   // number of the topic's partitions; 0 until the cluster was reached
	Connected  bool  // whether the cluster answered the last request
	Replaced   Replaced
	Abandoned  int64 // replaced sessions that did not end in time
}

// Replaced counts the sessions with the cluster that were replaced, by reason.
type Replaced struct {
	Stalled   int64 // the result of a record was missing for too long
	OutOfStep int64 // an idempotent producer and a broker disagreed about the sequence
}

// Failed are the sums of counts that were not sent, by reason.
type Failed struct {
	BufferFull   int64 // Config.Buffer was full: the brokers are unavailable or slow
	Delivery     int64 // a broker refused the record, or none accepted it within 10 s
	NotConnected int64 // the partitions were not known yet
	TooLong      int64 // the line does not fit into a record
	NoRule       int64 // the sink has no such rule: it was made with other rules than the guard
}

// Sum returns the sum of all reasons.
func (f Failed) Sum() int64 { return f.BufferFull + f.Delivery + f.NotConnected + f.TooLong + f.NoRule }

// Stats returns the sink's state and counters. It is safe for concurrent use. Once the sink
// is closed, Delivered and Failed together are all counts that it was sent.
func (s *Sink) Stats() Stats {
	stats := s.tally.load()
	bytes, records := s.queue.usage()
	stats.Buffered, stats.Waiting = bytes, int64(records)
	stats.Partitions, stats.Connected = int(s.partitions.Load()), s.reach.connected()
	return stats
}

// failingFor is the time after the last failure for which Send still returns the error. If some
// records fail while others are delivered, that is one outage.
const failingFor = 5 * time.Second

// deliveryCounts counts delivered and failed counts, and keeps the result for the next Send.
type deliveryCounts struct {
	mu         sync.Mutex
	stats      Stats     // everything except the present state of the queue and the cluster
	unreported int64     // sum of the counts that failed since the last Send
	err        error     // error of the last failure
	failedAt   time.Time // time of the last failure
	okAt       time.Time // time of the last delivery
}

func (t *deliveryCounts) load() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

// add adds n to a counter, a field of stats.
func (t *deliveryCounts) add(counter *int64, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*counter += n
}

func (t *deliveryCounts) deliver(r *record, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Records++
	t.stats.Bytes += int64(len(r.value))
	t.stats.Delivered += r.sum
	t.okAt = now
}

// fail records that counts with the given sum failed; why is a field of stats.Failed. It ignores
// heartbeats, which have no counts.
func (t *deliveryCounts) fail(why *int64, sum int64, err error, now time.Time) {
	if sum == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	*why += sum
	t.unreported += sum
	if err != nil {
		t.err, t.failedAt = err, now
	}
}

// takeResult returns the sum of the counts that failed since the last call, and the error of an
// outage.
func (t *deliveryCounts) takeResult(now time.Time) (failed int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed, t.unreported = t.unreported, 0
	if t.err != nil && t.okAt.After(t.failedAt) && now.Sub(t.failedAt) > failingFor {
		t.err = nil
	}
	return failed, t.err
}
