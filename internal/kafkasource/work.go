package kafkasource

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

// start runs the worker until its end method is called.
func (w *worker) start(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	w.source.working.Go(func() {
		defer close(w.done)
		defer w.source.retire(w)
		if w.after != nil {
			<-w.after.done // at most one worker of a partition may write; the previous one ends soon
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

// requestStop asks the worker to end. If drain is set, it empties its queue first.
func (w *worker) requestStop(drain bool) {
	w.drain.Store(drain)
	w.stop()
}

// open creates the worker's state for a topic of n partitions.
func (w *worker) open(n int, publisher PartitionPublisher) {
	c := &w.source.cfg
	w.parts = n
	w.gate = &gate{to: publisher}
	rules := w.source.inForce.Load().Rules
	w.rules = decode.NumberRules(rules)
	w.decoder = decode.NewDecoder(rules, c.Encoding)
	w.decoder.Canonical = c.Canonical
	w.decoder.Believe(c.Trust)
	windows, accounts := aggregator.SplitMemory(c.Memory)
	w.decoder.LimitAccounts(accounts / int64(n))
	var onTops func([]aggregator.Tops)
	if c.OnTops != nil {
		onTops = func(tops []aggregator.Tops) { c.OnTops(w.partition, tops) }
	}
	w.detector = aggregator.NewDetector(aggregator.DetectorConfig{
		Rules: rules, Publisher: w.gate, Memory: windows, Grace: grace,
		Days: c.Days, Part: int(w.partition), Parts: n, Homes: homes(rules, n), OnTops: onTops,
	})
	w.in = &intake{Detector: w.detector}
	w.mark = newWatermark(w.seek, grace, decode.DefaultLag)
	if live := w.source.live.Load(); live != nil {
		w.mark.setKnown(*live)
	}
	w.spoken = w.seek
	w.now = w.seek
	w.in.recordLoss(w.seek) // nothing is known of the time before
	w.advance(w.seek)
}

func (w *worker) run(ctx context.Context, publisher PartitionPublisher) {
	publishing, stopPublishing := context.WithCancel(context.WithoutCancel(ctx))
	adopted, published := make(chan inheritance, 1), make(chan struct{})
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
			w.handleEnds(e)
		case left := <-adopted:
			w.inheritHot(left)
		case <-w.reloads:
			w.reload()
		case <-ticker.C:
		}
		w.runDue(time.Now())
	}
	for w.drain.Load() && len(w.queue) > 0 {
		w.work(<-w.queue, time.Now())
	}
	w.runDue(time.Now())
	stopPublishing()
	<-published
	w.show()
}

// work counts a batch.
func (w *worker) work(b batch, now time.Time) {
	w.wall = now
	if b.lost != nil {
		w.in.recordLoss(now)
		w.position = b.lost.ResetTo
		w.source.stats.Truncated.Add(1)
		if mayLog(&w.source.lines.truncated) {
			w.source.cfg.Log.Warn("brokers lost records that they had accepted: some counts may be missing", "partition", w.partition, "err", b.lost)
		}
	}
	for _, r := range b.records {
		w.record(r, b.logStart, now)
	}
	w.reach()
}

// handleEnds processes the leader's answer about the end of the partition.
func (w *worker) handleEnds(e ends) {
	if w.oldest < 0 && e.start >= 0 {
		w.oldest = e.start
		w.loseSkipped(w.mark.appended)
		if w.position < 0 {
			w.position = e.start
		}
	}
	if e.end == 0 || e.start == 0 {
		w.mark.setKnown(nil) // no record is older than those that are read
	}
	// An end that moved back was truncated and would never be reached.
	if w.pending.asked.IsZero() || e.end < w.pending.end {
		w.pending = e
	}
	w.report.end = e.end
	w.reach()
}

// loseSkipped records a loss if the client has left records out. The client asks for the first
// record since seek and for the end at once, and begins at the end if there was no record.
// Records written between the two answers are not read.
func (w *worker) loseSkipped(appended time.Time) {
	if w.oldest >= 0 && w.begun > w.oldest {
		w.in.recordLoss(appended)
	}
}

// reach checks whether all records have been read that were in the partition when its end was
// asked for.
func (w *worker) reach() {
	if w.pending.asked.IsZero() || w.position < 0 || w.position < w.pending.end {
		return
	}
	// A partition that is empty, or could not be reached for long, may have been one that no
	// sender could write to. So it does not prove silence.
	if before := w.mark.sure; before.IsZero() && w.begun < 0 || !before.IsZero() && w.pending.asked.Sub(before) > grace {
		w.in.recordLoss(w.pending.asked)
	}
	w.mark.reached(w.pending.asked)
	if len(w.mark.senders) == 0 {
		w.report.completeMoved = w.wall // its time may wait for instances, but it is read
	}
	w.pending = ends{}
	if !w.report.covered {
		w.report.covered = true
		w.adoptWhenCovered()
	}
}

// runDue does the work that is due at least each tick.
func (w *worker) runDue(now time.Time) {
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
		w.live.Store(&liveInstances{names: w.mark.liveNames(), covered: w.report.covered, complete: !w.awaiting})
		w.show()
	}
}

// advance moves the detector to the time up to which all counts have arrived, and its clock to
// the present. The clock runs ahead of that time by no more than the grace, for which counts are
// kept. So while the partition is frozen, its windows are, too. The clock never goes back, since
// the detector would take that for a clock that was set.
func (w *worker) advance(clock time.Time) {
	var elsewhere map[string]time.Time
	if seen := w.elsewhere.Load(); seen != nil {
		elsewhere = *seen
	}
	before := w.mark.complete
	complete := w.mark.advance(elsewhere)
	if complete.After(before) {
		w.report.completeMoved = w.wall
	}
	w.advanced = w.mark.appended
	w.now = base.Later(w.now, base.Earlier(clock, complete.Add(grace)))
	w.updateAwaiting(complete)
	w.decoder.Advance(w.now, w.in)
	w.detector.AdvanceTo(w.now, complete)
	if w.gate.isOpen {
		w.gate.to.Judged(complete)
	}
}

// updateAwaiting makes high counts unknown while an instance may still return after a break, so
// that no key cools.
func (w *worker) updateAwaiting(complete time.Time) {
	before := w.awaiting
	switch w.awaiting = w.mark.isAwaiting(); {
	case w.awaiting:
		w.in.await(w.now)
	case before:
		w.in.recordLoss(complete) // the last instance to return may have been too late for closed panes
		w.in.caughtUp()
	}
}
