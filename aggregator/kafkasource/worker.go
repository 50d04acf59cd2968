package kafkasource

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/wire"
)

// worker owns a partition for as long as it is assigned: one goroutine, which
// counts, and another that takes the hot set over and then publishes.
type worker struct {
	source    *Source
	partition int32
	seek      time.Time // records are read from then on

	queue    chan batch
	paused   atomic.Pointer[kgo.Client] // no more is fetched until the queue is nearly empty; nil: it is
	ends     chan ends                  // the newest answer
	after    *worker                    // who had the partition in this process before
	stop     context.CancelFunc
	isLost   atomic.Bool   // out of the group: the partition is not read
	drain    atomic.Bool   // what is queued is worked off at the end
	done     chan struct{} // closed when all is over
	decoder  *decode.Decoder
	detector *aggregator.Detector
	in       *intake
	gate     *gate
	mark     *watermark
	leaving  []hotparam.Key // keys that another partition has now
	left     time.Time      // when they are let go of

	parts     int       // partitions of the topic
	now       time.Time // the detector's
	wall      time.Time // the clock, as of the batch or tick at hand
	advanced  time.Time // the newest record, when the detector was told the time last
	spoken    time.Time // the newest record that was sent by an instance
	position  int64     // offset that is read next; -1: not known
	first     bool      // no record has come yet
	pending   ends      // end that is to be reached
	refreshed time.Time
	report    report
	shown     atomic.Pointer[report]
	toldAt    atomic.Int64                         // when the leader last told its end, in nanoseconds since the Unix epoch
	publisher atomic.Pointer[PartitionPublisher]   // once it has the partition's part
	elsewhere atomic.Pointer[map[string]time.Time] // instances, by when any partition of ours heard of them
	instances atomic.Pointer[[]hotparam.Instance]
	clocks    atomic.Pointer[[]decode.SenderClock] // of these that are off
}

// batch is what one fetch brought of a partition.
type batch struct {
	records  []*kgo.Record
	logStart int64 // offset of the oldest record that the broker has
	lost     *kgo.ErrDataLoss
}

const (
	// queued is how many batches wait for a worker at most; when half of it is
	// there nothing more is fetched of its partition.
	queued = 8
	// tick is how often a worker looks at the time.
	tick = 50 * time.Millisecond
)

func (s *Source) newWorker(partition int32, now time.Time) *worker {
	w := &worker{
		source:    s,
		partition: partition,
		seek:      now.Add(-s.lookback),
		queue:     make(chan batch, queued),
		ends:      make(chan ends, 1),
		done:      make(chan struct{}),
		position:  -1,
		first:     true,
	}
	w.toldAt.Store(now.UnixNano())
	w.shown.Store(&report{position: -1, end: -1})
	return w
}

// start runs the worker until end.
func (w *worker) start(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	w.source.working.Go(func() {
		defer close(w.done)
		defer w.source.retire(w)
		if w.after != nil {
			<-w.after.done // at most one writes; it ends soon
			w.after = nil
		}
		n := w.source.waitSize(ctx)
		if n == 0 {
			return
		}
		publisher, err := w.source.cfg.Publisher(w.partition)
		if err != nil {
			w.source.fail(fmt.Errorf("kafka source: publisher of partition %d: %w", w.partition, err))
			return
		}
		w.open(n, publisher)
		w.run(ctx, publisher)
	})
}

// end asks the worker to end; with drain it works off what is queued.
func (w *worker) end(drain bool) {
	w.drain.Store(drain)
	w.stop()
}

// open makes what the worker needs in a topic of n partitions.
func (w *worker) open(n int, publisher PartitionPublisher) {
	c := &w.source.cfg
	w.parts = n
	w.gate = &gate{to: publisher}
	w.decoder = decode.NewDecoder(c.Rules, c.Encoding)
	w.decoder.Canonical = c.Canonical
	w.decoder.Believe(c.Trust)
	windows, accounts := aggregator.SplitMemory(c.Memory)
	w.decoder.LimitAccounts(accounts / int64(n))
	w.detector = aggregator.NewDetector(aggregator.DetectorConfig{
		Rules: c.Rules, Publisher: w.gate, Memory: windows, Grace: c.Grace,
		Part: int(w.partition), Parts: n, Homes: homes(c.Rules, n),
	})
	w.in = &intake{Detector: w.detector}
	w.mark = newWatermark(w.seek, w.seek.Add(w.source.lookback), c.Grace, c.Lag)
	w.spoken = w.seek
	w.now = w.seek
	w.in.lose(w.seek) // of what was before nothing is known
	w.advance(w.seek)
}

// homes are the partitions that have the rules whose keys are counted in one
// place, by rule number; -1: any.
func homes(rules *hotparam.Rules, n int) []int {
	all := make([]int, len(rules.Rules))
	for i := range all {
		if all[i] = -1; rules.Rules[i].Whole() {
			all[i] = int(wire.Partition([]byte(rules.Rules[i].CountPrefix(rules.Namespace)), n))
		}
	}
	return all
}

func (w *worker) run(ctx context.Context, publisher PartitionPublisher) {
	publishing, stopPublishing := context.WithCancel(context.WithoutCancel(ctx))
	adopted, published := make(chan []hotparam.Hot, 1), make(chan struct{})
	go func() {
		defer close(published)
		w.publish(ctx, publishing, publisher, adopted)
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case b := <-w.queue:
			w.work(b, time.Now())
			w.resume()
		case e := <-w.ends:
			w.heard(e)
		case hot := <-adopted:
			w.adopt(hot, time.Now())
		case <-ticker.C:
		}
		w.turn(time.Now())
	}
	for w.drain.Load() && len(w.queue) > 0 {
		w.work(<-w.queue, time.Now())
	}
	w.turn(time.Now())
	stopPublishing()
	<-published
	w.show()
}

// work counts a batch.
func (w *worker) work(b batch, now time.Time) {
	w.wall = now
	if b.lost != nil {
		w.in.lose(now)
		w.position = b.lost.ResetTo
		w.source.stats.Truncated.Add(1)
		if mayLog(&w.source.lines.truncated) {
			w.source.cfg.Log.Warn("brokers lost records that were taken already: some counts may be missing", "partition", w.partition, "err", b.lost)
		}
	}
	for _, r := range b.records {
		w.record(r, b.logStart, now)
	}
	w.reach()
}

// heard takes what the partition's leader said of its end.
func (w *worker) heard(e ends) {
	if w.position < 0 {
		w.position = e.start
	}
	// An end that went back was cut off: it is never reached.
	if w.pending.asked.IsZero() || e.end < w.pending.end {
		w.pending = e
	}
	w.report.end = e.end
	w.reach()
}

// reach looks whether all is read that was in the partition when it was asked.
func (w *worker) reach() {
	if w.pending.asked.IsZero() || w.position < 0 || w.position < w.pending.end {
		return
	}
	// A partition that could not be reached for long, or in which nothing is, may
	// have been one that nobody could write: that is no proof of silence.
	if before := w.mark.sure; before.IsZero() && w.first || !before.IsZero() && w.pending.asked.Sub(before) > w.source.cfg.Grace {
		w.in.lose(w.pending.asked)
	}
	w.mark.reached(w.pending.asked)
	if len(w.mark.senders) == 0 {
		w.report.moved = w.wall // its time may wait to hear of instances, but it is read
	}
	w.pending = ends{}
	if !w.report.covered {
		w.report.covered, w.gate.whole = true, true
		w.in.caughtUp()
	}
}

// turn is what is done at least each tick.
func (w *worker) turn(now time.Time) {
	w.wall = now
	w.advance(now)
	w.letGo(now)
	if since := now.Sub(w.refreshed); since >= time.Second || since < 0 {
		w.refreshed = now
		w.detector.Refresh()
		instances := w.decoder.Instances(now)
		w.instances.Store(&instances)
		clocks := w.decoder.Clocks(now)
		w.clocks.Store(&clocks)
		w.show()
	}
}

// advance brings the detector to the time up to which all counts have come, and
// its clock to the present, but no further from that time than counts are kept:
// while the partition is frozen its windows are, too. It never goes back, or the
// detector would take it for a clock that was set.
func (w *worker) advance(clock time.Time) {
	var elsewhere map[string]time.Time
	if seen := w.elsewhere.Load(); seen != nil {
		elsewhere = *seen
	}
	before := w.mark.complete
	complete := w.mark.advance(elsewhere)
	if complete.After(before) {
		w.report.moved = w.wall
	}
	w.advanced = w.mark.appended
	w.now = later(w.now, earlier(clock, complete.Add(w.source.cfg.Grace)))
	if !w.report.covered {
		w.in.await(w.now)
	}
	w.decoder.Advance(w.now, w.in)
	w.detector.AdvanceTo(w.now, complete)
}
