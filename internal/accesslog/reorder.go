package accesslog

import (
	"container/heap"
	"time"
)

const (
	// defaultReorder is longer than most requests take. Servers write a line when a request is
	// done, and many stamp it with the time of its beginning.
	defaultReorder = 10 * time.Second

	// maxReordered bounds the memory of the requests that are held back, in bytes.
	maxReordered = 256 << 20

	// waitingSize is the memory of a request that is held back, besides its text.
	waitingSize = 128
)

// reorder holds requests back until no earlier one is to be expected, and returns them in the
// order of time; equal times keep their order. A request that comes more than span behind the
// newest is returned at once, perhaps after later ones.
type reorder struct {
	span     int64 // span of the log's own time, in nanoseconds
	maxBytes int64 // bytes that the requests held back may take

	heap   waitingHeap // the earliest first
	bytes  int64
	number uint64 // number of the newest request added

	newest int64 // time of the newest request
	due    int64 // requests of this time or before are returned
	given  int64 // latest time that was returned
	full   bool  // whether maxBytes was exceeded, so that a request was returned early
}

// waiting is a request that is held back.
type waiting struct {
	nanos  int64
	number uint64 // orders requests of equal times
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
	return &reorder{span: int64(max(0, span)), maxBytes: maxReordered, newest: -1, due: -1, given: -1}
}

// add adds a request. If a later request has been returned, late is how far e is behind the
// newest; otherwise it is 0.
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

// advance moves the log's time forward to the wall clock while no line comes, so that held-back
// requests do not wait for the next line. It does so only if the log is still being written: its
// newest request was within span of the wall clock when the wait for a line began.
func (b *reorder) advance(began, now time.Time) {
	if behind := began.UnixNano() - b.newest; max(behind, -behind) <= b.span {
		b.due = max(b.due, now.UnixNano()-b.span)
	}
}

// finish makes all held-back requests due.
func (b *reorder) finish() { b.due = b.newest }

// next returns the earliest request that is due, or for which there is no room.
func (b *reorder) next() (e *Entry, ok bool) {
	if len(b.heap) == 0 {
		return nil, false
	}
	if b.heap[0].nanos > b.due {
		if b.bytes <= b.maxBytes {
			return nil, false
		}
		b.full = true
	}
	w := heap.Pop(&b.heap).(*waiting)
	b.given = max(b.given, w.nanos)
	b.bytes -= w.entry.size()
	return &w.entry, true
}

// size returns the memory that the entry takes while it is held back.
func (e *Entry) size() int64 {
	return waitingSize + int64(len(e.Method)+len(e.Target)+len(e.Addr)+len(e.values))
}
