package kafkasource

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// worker owns a partition for as long as it is assigned: one goroutine, which
// counts, and another that takes the hot set over and then publishes.
type worker struct {
	source    *Source
	partition int32
	seek      time.Time // records are read from then on

	queue    chan batch
	paused   atomic.Pointer[kgo.Client] // the client that fetches no more until the queue is nearly empty, or nil
	ends     chan ends                  // the newest answer
	after    *worker                    // the worker that had the partition in this process before
	stop     context.CancelFunc
	isLost   atomic.Bool   // out of the group: the partition is not read
	drain    atomic.Bool   // the queue is emptied at the end
	done     chan struct{} // closed when all is over
	decoder  *decode.Decoder
	detector *aggregator.Detector
	rules    *decode.Numbered
	reloads  chan struct{} // has a value if the source has other rules
	in       *intake
	gate     *gate
	mark     *watermark
	headers  []wire.Header // buffer for those of a record
	adopted  inheritance   // what was published when we got the partition, until all of it is read
	leaving  []rules.Key   // keys that another partition has now
	left     time.Time     // when they are let go of

	parts     int       // partitions of the topic
	now       time.Time // the detector's
	wall      time.Time // the clock, as of the batch or tick at hand
	advanced  time.Time // the newest record when the detector last got the time
	spoken    time.Time // the newest record that was sent by an instance
	awaiting  bool      // an instance may still return after a break
	position  int64     // offset that is read next; -1: not known
	begun     int64     // offset that was read first; -1: none yet
	oldest    int64     // offset of the first record since seek; -1: not known
	pending   ends      // end that is to be reached
	refreshed time.Time
	report    report
	shown     atomic.Pointer[report]
	toldAt    atomic.Int64                         // when the leader last reported the end, in nanoseconds since the Unix epoch
	publisher atomic.Pointer[PartitionPublisher]   // once it has the partition's part
	elsewhere atomic.Pointer[map[string]time.Time] // instances, by when any partition of ours heard of them
	instances atomic.Pointer[[]rules.Instance]
	clocks    atomic.Pointer[[]decode.SenderClock] // of these that are off
	live      atomic.Pointer[liveInstances]
}

// batch is the records of a partition from one fetch.
type batch struct {
	records  []*kgo.Record
	logStart int64 // offset of the oldest record that the broker has
	lost     *kgo.ErrDataLoss
}

const (
	// queued is the most batches that wait for a worker. When half as many wait, its
	// partition is no longer fetched.
	queued = 8
	// tick is how often a worker checks the time.
	tick = 50 * time.Millisecond
)

func (s *Source) newWorker(partition int32, now time.Time) *worker {
	w := &worker{
		source:    s,
		partition: partition,
		seek:      now.Add(-s.lookback()),
		queue:     make(chan batch, queued),
		ends:      make(chan ends, 1),
		done:      make(chan struct{}),
		reloads:   make(chan struct{}, 1),
		position:  -1,
		begun:     -1,
		oldest:    -1,
	}
	w.toldAt.Store(now.UnixNano())
	w.shown.Store(&report{position: -1, start: -1, end: -1})
	return w
}

// homes returns, by rule number, the partition of a rule whose keys are counted in one place,
// and -1 for other rules.
func homes(rules *rules.Rules, n int) []int {
	all := make([]int, len(rules.Rules))
	for i := range all {
		if all[i] = -1; rules.Rules[i].Whole() {
			all[i] = int(wire.Partition([]byte(rules.Rules[i].CountPrefix(rules.Namespace)), n))
		}
	}
	return all
}
