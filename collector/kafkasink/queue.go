package kafkasink

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// window bounds the number of a partition's records that the producer has. It is enough for a
// fast stream over a slow network (64 in 20 ms). The producer's channels hold as many, so that
// a partition without a leader, whose records pile up there, does not block the others.
const window = 64

// queue holds the waiting records by partition. It bounds their bytes together with the bytes
// of the records in flight. Send adds records, and one goroutine removes them. It is safe
// for concurrent use.
type queue struct {
	limit int64

	mu     sync.Mutex
	lanes  []lane // by partition
	next   int    // index of the lane to examine first
	bytes  int64  // size of all records, waiting or in flight
	count  int    // number of all records
	closed bool   // whether records are refused
}

// lane is the queue of one partition.
type lane struct {
	waiting []*record // in the order of their numbers
	flying  int       // number of records that the producer has
	moved   time.Time // time when the producer got the first of these, or last reported one
	// back holds the records that the producer returned. They are retried after retry, once
	// the producer has none of the lane's records, so that they keep their order.
	back  []*record
	retry time.Time
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

// ready returns the next record to send without removing it, or nil if there is none. Lanes
// take turns.
func (q *queue) ready(now time.Time) *record {
	q.mu.Lock()
	defer q.mu.Unlock()
	for range q.lanes {
		l := &q.lanes[q.next]
		if len(l.back) > 0 && l.flying == 0 && !now.Before(l.retry) {
			l.putBack()
		}
		if len(l.waiting) > 0 && len(l.back) == 0 && l.flying < window {
			return l.waiting[0]
		}
		q.next = (q.next + 1) % len(q.lanes)
	}
	return nil
}

// putBack puts returned records before the waiting ones, in the order of their numbers.
func (l *lane) putBack() {
	slices.SortFunc(l.back, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
	l.waiting, l.back = append(l.back, l.waiting...), nil
}

// markInFlight records that the producer has received the first record of a lane.
func (q *queue) markInFlight(r *record, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[r.partition]
	l.waiting[0] = nil // so that it can be freed
	l.waiting = l.waiting[1:]
	if l.flying == 0 {
		l.moved = now
	}
	l.flying++
	q.next = (q.next + 1) % len(q.lanes)
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
	l.back = append(l.back, r)
	l.retry = now.Add(pause)
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
		for _, records := range []*[]*record{&l.waiting, &l.back} {
			*records = slices.DeleteFunc(*records, func(r *record) bool {
				old := r.born.Before(before)
				if old {
					dropped = append(dropped, r)
				}
				return old
			})
		}
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
