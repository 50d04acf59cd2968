package kafkasink

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// window is how many records of a partition the producer has at most. It is
// enough for a fast stream over a slow network (64 in 20 ms), and the producer's
// channels hold as many, so that a partition without a leader, whose records pile
// up there, does not hold up the others.
const window = 64

// queue holds the records that wait, by partition, and bounds their bytes together
// with those that are on their way. Send adds to it, one goroutine takes from it.
type queue struct {
	limit int64

	mu    sync.Mutex
	lanes []lane // by partition
	next  int    // lane to look at first
	bytes int64  // of all records, waiting or on their way
	count int    // of them
	full  bool   // no more records are taken
}

// lane is one partition's.
type lane struct {
	head, tail *record   // waiting
	flying     int       // with the producer
	moved      time.Time // when it got the first of them, or last told of one
	// back are records that the producer gave back, to be tried again: when it
	// has none of the lane's any more, and not before retry, so that they keep
	// their order.
	back  []*record
	retry time.Time
}

// push adds a record unless the buffer is full.
func (q *queue) push(r *record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.full || q.bytes+r.size() > q.limit {
		return false
	}
	for len(q.lanes) <= int(r.partition) {
		q.lanes = append(q.lanes, lane{})
	}
	q.bytes += r.size()
	q.count++
	q.lanes[r.partition].push(r)
	return true
}

func (l *lane) push(r *record) {
	r.next = nil
	if l.head == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
}

// ready is the record to go next, nil if none may. Lanes take turns. It stays
// where it is until taken.
func (q *queue) ready(now time.Time) *record {
	q.mu.Lock()
	defer q.mu.Unlock()
	for range q.lanes {
		l := &q.lanes[q.next]
		if len(l.back) > 0 && l.flying == 0 && !now.Before(l.retry) {
			l.putBack()
		}
		if l.head != nil && len(l.back) == 0 && l.flying < window {
			return l.head
		}
		q.next = (q.next + 1) % len(q.lanes)
	}
	return nil
}

// putBack puts what came back before what waits, in the order of the numbers.
func (l *lane) putBack() {
	slices.SortFunc(l.back, func(a, b *record) int { return cmp.Compare(b.seq, a.seq) })
	for _, r := range l.back {
		if r.next = l.head; l.head == nil {
			l.tail = r
		}
		l.head = r
	}
	l.back = l.back[:0]
}

// take moves the first of a lane's records to the producer.
func (q *queue) take(r *record, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[r.partition]
	l.head, r.next = r.next, nil
	if l.flying == 0 {
		l.moved = now
	}
	l.flying++
	q.next = (q.next + 1) % len(q.lanes)
}

// done releases a record that the producer is done with.
func (q *queue) done(r *record, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[r.partition]
	l.flying--
	l.moved = now
	q.bytes -= r.size()
	q.count--
}

// again has a record tried again that the producer gave back, when some time has
// passed.
func (q *queue) again(r *record, now time.Time, pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[r.partition]
	l.flying--
	l.moved = now
	l.back = append(l.back, r)
	l.retry = now.Add(pause)
}

// isStalled reports whether the producer has some records of a partition and has told
// of none since before the instant.
func (q *queue) isStalled(before time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.lanes, func(l lane) bool { return l.flying > 0 && l.moved.Before(before) })
}

// drop takes out what has been waiting since before the instant.
func (q *queue) drop(before time.Time) (dropped []*record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.lanes {
		l := &q.lanes[i]
		for l.head != nil && l.head.born.Before(before) {
			dropped = append(dropped, l.head)
			l.head = l.head.next
		}
		l.back = slices.DeleteFunc(l.back, func(r *record) bool {
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

// close takes no more records.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full = true
}

func (q *queue) usage() (bytes int64, records int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes, q.count
}
