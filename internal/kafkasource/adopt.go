package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// adoptTimeout bounds one attempt to take over the hot set.
const adoptTimeout = 2 * time.Second

// heartbeat is the longest time between two records of an instance to each partition. So the
// first record to be judged may be that much older than the end of the counts judged before.
const heartbeat = time.Second

// adoptRetry is the shortest wait before the take-over is retried. The wait doubles up to
// adoptRetryMost, since each partition makes a call of its own.
const (
	adoptRetry     = 100 * time.Millisecond
	adoptRetryMost = time.Second
)

// inheritance is the state that the previous owner of a partition left.
type inheritance struct {
	hot    []published.Hot
	judged time.Time // end of the counts that it had judged; zero if unknown
}

// publish takes over the partition's part of the hot set, however long that takes, and then
// publishes until publishing ends. Before the take-over it returns when ctx ends.
func (w *worker) publish(ctx, publishing context.Context, publisher PartitionPublisher, adopted chan<- inheritance) {
	log, failures, isLogged := w.source.cfg.Log, 0, false
	for {
		try, cancel := context.WithTimeout(ctx, adoptTimeout)
		hot, judged, err := publisher.Adopt(try)
		cancel()
		if err == nil {
			if isLogged {
				log.Info("partition's hot keys taken over after all", "partition", w.partition)
			}
			adopted <- inheritance{hot, judged} // has room
			break
		}
		if ctx.Err() != nil {
			return
		}
		if failures++; failures == 1 && mayLog(&w.source.lines.adoption) {
			isLogged = true
			log.Warn("cannot take a partition's hot keys over; retrying", "partition", w.partition, "err", err)
		}
		w.source.stats.AdoptFailures.Add(1)
		if base.Sleep(ctx, base.Backoff(failures, adoptRetry, adoptRetryMost)) != nil {
			return
		}
	}
	if err := publisher.Run(publishing); err != nil && !errors.Is(err, context.Canceled) {
		w.source.fail(fmt.Errorf("kafka source: publisher of partition %d: %w", w.partition, err))
	}
}

// inheritHot stores the keys that are published for the partition, whose previous owner is fenced
// off now. The detector adopts them once the partition is covered. Until then it judges windows
// from before the keys were published, and would cool them.
func (w *worker) inheritHot(left inheritance) {
	w.report.adopted = true
	w.publisher.Store(&w.gate.to)
	w.adopted = left
	w.adoptWhenCovered()
}

func (w *worker) adoptWhenCovered() {
	if w.report.adopted && w.report.covered && !w.gate.isOpen {
		w.adopt(w.adopted, w.wall)
		w.adopted = inheritance{}
	}
}

// adopt adopts the keys that are published for the partition. A key that the detector does not
// take cools if its rule was removed or its value is allowed now. If the topic has grown and the
// key is counted in another partition, it stays until that partition has had the time to find
// it. Then it is released, which removes only keys that the other partition has not published.
func (w *worker) adopt(left inheritance, now time.Time) {
	var cool []published.Hot
	for _, h := range w.detector.Adopt(left.hot, w.now) {
		if w.moved(h.Rule) {
			w.leaving = append(w.leaving, h.Key)
			w.releaseAt = now.Add(w.source.lookback())
		} else {
			cool = append(cool, h)
		}
	}
	w.gate.open(append(left.hot, w.adoptMissed(left)...), w.detector.Refresh)
	if len(cool) > 0 {
		w.gate.Publish(published.Change{Cool: cool})
	}
}

// adoptMissed makes keys hot, as of now, that became hot and cooled while the partition had no
// owner and so were never published. The detector then cools them when their hold has ended and
// their windows are below the exit, as if it had found them now. Keys from counts that the
// previous owner judged stay as that owner published them. Keys that became
// hot longer ago than a hand-over takes are ignored.
func (w *worker) adoptMissed(left inheritance) (missed []published.Hot) {
	if left.judged.IsZero() {
		return nil
	}
	known := make(map[rules.Key]bool)
	for _, all := range [][]published.Hot{left.hot, w.detector.Listed()} {
		for i := range all {
			known[all[i].Key] = true
		}
	}
	since := base.Later(left.judged.Add(-heartbeat), w.now.Add(-w.source.cfg.handOver()))
	for key, h := range w.gate.found {
		if h.Since.After(since) && !known[key] {
			h.Since = w.now
			missed = append(missed, h)
		}
	}
	w.detector.Adopt(missed, w.now)
	return missed
}

// moved reports whether a rule exists and its home is another partition.
func (w *worker) moved(id string) bool {
	rules := w.rules.ByNumber()
	for i, home := range homes(rules, w.parts) {
		if r := &rules.Rules[i]; r.ID == id && len(r.Hot) > 0 {
			return home >= 0 && home != int(w.partition)
		}
	}
	return false
}

// letGo releases the keys that are counted in another partition, once their time has come.
func (w *worker) letGo(now time.Time) {
	if len(w.leaving) == 0 || now.Before(w.releaseAt) {
		return
	}
	var cool []published.Hot
	for _, key := range w.leaving {
		cool = append(cool, published.Hot{Key: key})
	}
	w.leaving = nil
	w.gate.Publish(published.Change{Cool: cool})
}
