package kafkasink

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// queue holds the records that wait for the producer, by partition. It bounds their bytes together
// with the bytes of the records that the producer has. Send adds records, and one goroutine
// removes them. It is safe for concurrent use.
type queue struct {
	limit int64

	mu     sync.Mutex
	lanes  []lane // by partition
	bytes  int64  // size of all records, waiting or in flight
	count  int    // number of all records
	closed bool   // whether records are refused
}

// lane is the queue of one partition.
type lane struct {
	waiting []*record // in the order of their numbers, unless the producer has returned some
	flying  int       // number of records that the producer has
	moved   time.Time // time when the producer got the first of these, or last reported one
	// returned reports whether the producer has returned some of the waiting records. They are
	// retried after retry, once the producer has none of the lane's records, so that they keep
	// their order.
	returned bool
	retry    time.Time
}

// push adds a record unless the buffer is full.
func (q *queue) push(r *record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes+r.size() > q.limit {
		return false
	}
	for len(q.lanes) <= int(r.partition) {
		q.lanes = append(q.lanes, lane{})
	}
	q.bytes += r.size()
	q.count++
	l := &q.lanes[r.partition]
	l.waiting = append(l.waiting, r)
	return true
}

// take removes and returns the records that may be sent now.
func (q *queue) take(now time.Time) (ready []*record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.lanes {
		l := &q.lanes[i]
		if l.returned {
			if l.flying > 0 || now.Before(l.retry) {
				continue
			}
			slices.SortFunc(l.waiting, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
			l.returned = false
		}
		if l.flying == 0 {
			l.moved = now
		}
		ready = append(ready, l.waiting...)
		l.flying, l.waiting = l.flying+len(l.waiting), nil
	}
	return ready
}

// done removes a record that the producer has delivered or that is given up.
func (q *queue) done(r *record, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[r.partition]
	l.flying--
	l.moved = now
	q.bytes -= r.size()
	q.count--
}

// retryLater schedules a record that the producer returned for a retry after a pause.
func (q *queue) retryLater(r *record, now time.Time, pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[r.partition]
	l.flying--
	l.moved = now
	l.waiting = append(l.waiting, r)
	l.returned, l.retry = true, now.Add(pause)
}

// isStalled reports whether the producer has records of some partition and has reported none of
// them since before.
func (q *queue) isStalled(before time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.lanes, func(l lane) bool { return l.flying > 0 && l.moved.Before(before) })
}

// drop removes and returns the waiting records that were built before the given time.
func (q *queue) drop(before time.Time) (dropped []*record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.lanes {
		l := &q.lanes[i]
		l.waiting = slices.DeleteFunc(l.waiting, func(r *record) bool {
			old := r.born.Before(before)
			if old {
				dropped = append(dropped, r)
			}
			return old
		})
	}
	for _, r := range dropped {
		q.bytes -= r.size()
		q.count--
	}
	return dropped
}

// close makes push refuse all further records.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func (q *queue) usage() (bytes int64, records int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes, q.count
}
