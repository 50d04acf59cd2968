package kafkasource

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// worker owns a partition for as long as it is assigned. One goroutine counts; another takes
// over the hot set and then publishes.
type worker struct {
	source    *Source
	partition int32
	seek      time.Time // records are read from then on

	queue     chan batch
	paused    atomic.Pointer[kgo.Client] // the client that does not fetch until the queue is nearly empty, or nil
	ends      chan ends                  // newest answer of the leader
	after     *worker                    // previous worker of the partition in this process
	stop      context.CancelFunc
	isLost    atomic.Bool   // out of the group: the partition is not read
	drain     atomic.Bool   // empty the queue at the end
	done      chan struct{} // closed when the worker has ended
	decoder   *decode.Decoder
	detector  *aggregator.Detector
	rules     *decode.Numbered
	reloads   chan struct{} // has a value if the source has other rules
	in        *intake
	gate      *gate
	mark      *watermark
	headers   []wire.Header // buffer for the headers of a record
	adopted   inheritance   // keys that were published when we got the partition, until it is covered
	leaving   []rules.Key   // keys that another partition counts now
	releaseAt time.Time     // time at which the leaving keys are released

	parts     int       // partitions of the topic
	now       time.Time // the detector's clock
	wall      time.Time // wall clock at the start of the current batch or tick
	advanced  time.Time // time of the newest record when the detector was last advanced
	spoken    time.Time // time of the newest record of an instance
	awaiting  bool      // an instance may still return after a break
	position  int64     // offset to be read next; -1 if not known
	begun     int64     // offset that was read first; -1 if none yet
	oldest    int64     // offset of the first record since seek; -1 if not known
	pending   ends      // end that is to be reached
	refreshed time.Time
	report    report
	shown     atomic.Pointer[report]
	toldAt    atomic.Int64                         // time of the leader's last report of the end, in nanoseconds since the Unix epoch
	publisher atomic.Pointer[PartitionPublisher]   // set once the partition's part is taken over
	elsewhere atomic.Pointer[map[string]time.Time] // times at which each instance was last heard in any partition of ours
	instances atomic.Pointer[[]published.Instance]
	clocks    atomic.Pointer[[]decode.SenderClock] // clocks of the instances that are off
	live      atomic.Pointer[liveInstances]
}

// batch is the records of a partition from one fetch.
type batch struct {
	records  []*kgo.Record
	logStart int64 // offset of the oldest record that the broker has
	lost     *kgo.ErrDataLoss
}

const (
	// queued bounds the batches that wait for a worker. When half as many wait, the partition is
	// no longer fetched.
	queued = 8
	// tick is the interval at which a worker checks the time.
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
	w.shown.Store(&report{position: -1, oldest: -1, end: -1})
	return w
}

// homes returns, by rule number, the partition that is the home of a rule whose keys are counted
// in one place, and -1 for other rules.
func homes(rules *rules.Rules, n int) []int {
	all := make([]int, len(rules.Rules))
	for i := range all {
		if all[i] = -1; rules.Rules[i].Whole() {
			all[i] = int(wire.Partition([]byte(rules.Rules[i].Home(rules.Namespace)), n))
		}
	}
	return all
}
