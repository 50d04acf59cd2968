package accesslog

import (
	"container/heap"
	"time"
)

const (
	// defaultReorder is longer than most requests take: servers write a line when
	// a request is done, and many of them stamp it with when it began.
	defaultReorder = 10 * time.Second

	// maxReordered bounds the memory of the requests that wait, in bytes.
	maxReordered = 256 << 20

	// waitingSize is what a waiting request takes besides its text.
	waitingSize = 128
)

// reorder holds requests back until none of an earlier time is to be expected,
// and gives them in the order of time; equal times in the order in which they
// came. A request that comes more than span behind the newest may find that later
// ones are gone already; it is given as soon as it comes.
type reorder struct {
	span int64 // nanoseconds of the log's own time
	most int64 // bytes that the requests which wait may take

	heap   waitingHeap // the earliest first
	bytes  int64
	number uint64 // of the newest request added

	newest int64 // time of a request
	due    int64 // requests of this time or before are passed on
	given  int64 // latest time that was given
	full   bool  // most was reached, and a request given before its time
}

// waiting is a request that waits for its turn.
type waiting struct {
	nanos  int64
	number uint64 // orders equal times
	entry  Entry
}

// waitingHeap implements [heap.Interface].
type waitingHeap []*waiting

func (h waitingHeap) Len() int { return len(h) }
func (h waitingHeap) Less(i, j int) bool {
	return h[i].nanos < h[j].nanos || h[i].nanos == h[j].nanos && h[i].number < h[j].number
}
func (h waitingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *waitingHeap) Push(w any)   { *h = append(*h, w.(*waiting)) }
func (h *waitingHeap) Pop() any {
	old, last := *h, len(*h)-1
	w := old[last]
	old[last] = nil
	*h = old[:last]
	return w
}

func newReorder(span time.Duration) *reorder {
	return &reorder{span: int64(max(0, span)), most: maxReordered, newest: -1, due: -1, given: -1}
}

// add takes a request. late is how far it is behind the newest if one of a later
// time was given before it, else 0.
func (b *reorder) add(e Entry) (late time.Duration) {
	nanos := e.Time.UnixNano()
	if nanos < b.given {
		late = time.Duration(b.newest - nanos)
	}
	b.newest = max(b.newest, nanos)
	b.due = max(b.due, b.newest-b.span)
	b.number++
	heap.Push(&b.heap, &waiting{nanos, b.number, e})
	b.bytes += e.size()
	return late
}

// pass moves the time of a log that is being written while no line comes, so that
// what it holds does not wait for the next request: that log's time is the wall
// clock's. A log is taken for one that is being written if its newest request was
// within span of the wall clock when the wait for a line began.
func (b *reorder) pass(began, now time.Time) {
	if behind := began.UnixNano() - b.newest; max(behind, -behind) <= b.span {
		b.due = max(b.due, now.UnixNano()-b.span)
	}
}

// finish makes all that waits due.
func (b *reorder) finish() { b.due = b.newest }

// next gives the earliest request that is due, or that there is no room for.
func (b *reorder) next() (e *Entry, ok bool) {
	if len(b.heap) == 0 {
		return nil, false
	}
	if b.heap[0].nanos > b.due {
		if b.bytes <= b.most {
			return nil, false
		}
		b.full = true
	}
	w := heap.Pop(&b.heap).(*waiting)
	b.given = max(b.given, w.nanos)
	b.bytes -= w.entry.size()
	return &w.entry, true
}

// size is what the entry takes while it waits.
func (e *Entry) size() int64 {
	return waitingSize + int64(len(e.Method)+len(e.Target)+len(e.Addr)+len(e.values))
}
