package accesslog

import "time"

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

	heap   []waiting // the earliest first
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
	entry  *Entry
}

func (w *waiting) before(other *waiting) bool {
	return w.nanos < other.nanos || w.nanos == other.nanos && w.number < other.number
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
	b.push(waiting{nanos, b.number, &e})
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
	w := b.pop()
	b.given = max(b.given, w.nanos)
	b.bytes -= w.entry.size()
	return w.entry, true
}

func (b *reorder) push(w waiting) {
	at := len(b.heap)
	b.heap = append(b.heap, w)
	for at > 0 {
		parent := (at - 1) / 2
		if !w.before(&b.heap[parent]) {
			break
		}
		b.heap[at] = b.heap[parent]
		at = parent
	}
	b.heap[at] = w
}

func (b *reorder) pop() waiting {
	first, last := b.heap[0], len(b.heap)-1
	w := b.heap[last]
	b.heap[last] = waiting{}
	b.heap = b.heap[:last]
	if last == 0 {
		return first
	}
	at := 0
	for {
		child := 2*at + 1
		if child >= last {
			break
		}
		if child+1 < last && b.heap[child+1].before(&b.heap[child]) {
			child++
		}
		if !b.heap[child].before(&w) {
			break
		}
		b.heap[at] = b.heap[child]
		at = child
	}
	b.heap[at] = w
	return first
}

// size is what the entry takes while it waits.
func (e *Entry) size() int64 {
	return waitingSize + int64(len(e.Method)+len(e.Target)+len(e.Addr)+len(e.values))
}
