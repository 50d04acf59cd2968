package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// adoptTimeout bounds one try to take the hot set over.
const adoptTimeout = 2 * time.Second

// heartbeat is how often an instance sends to each partition at least, and so how much older than
// what was judged its first record may be.
const heartbeat = time.Second

// adoptRetry is how soon the take-over is tried again, doubled up to adoptRetryMost: each
// partition makes a call of its own.
const (
	adoptRetry     = 100 * time.Millisecond
	adoptRetryMost = time.Second
)

// inheritance is what the previous owner of a partition has left.
type inheritance struct {
	hot    []rules.Hot
	judged time.Time // up to when it had judged the counts; zero if that is not known
}

// publish takes the partition's part of the hot set over, however long that
// takes, and then publishes until the second context ends.
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
			log.Warn("cannot take a partition's hot keys over; trying on", "partition", w.partition, "err", err)
		}
		w.source.stats.AdoptFailures.Add(1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(base.Backoff(failures, adoptRetry, adoptRetryMost)):
		}
	}
	if err := publisher.Run(publishing); err != nil && !errors.Is(err, context.Canceled) {
		w.source.fail(fmt.Errorf("kafka source: publisher of partition %d: %w", w.partition, err))
	}
}

// inherit takes the keys that are published for the partition, which is fenced off now. The
// detector adopts them once the partition is covered: until then it judges windows from before
// the keys were published, and would cool them.
func (w *worker) inherit(left inheritance) {
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

// adopt goes on with the keys that are published for the partition. Those that it
// does not take are of a rule that is gone, or of a value that is allowed now:
// they cool. Or the topic has more partitions than it had, and they are counted
// in another: they stay until that one has had the time to find them, and then
// are let go of, which takes away only what it has not published.
func (w *worker) adopt(left inheritance, now time.Time) {
	var cool []rules.Hot
	for _, h := range w.detector.Adopt(left.hot, w.now) {
		if w.moved(h.Rule) {
			w.leaving = append(w.leaving, h.Key)
			w.left = now.Add(w.source.lookback())
		} else {
			cool = append(cool, h)
		}
	}
	w.gate.open(append(left.hot, w.adoptMissed(left)...), w.detector.Refresh)
	if len(cool) > 0 {
		w.gate.Publish(rules.Change{Cool: cool})
	}
}

// adoptMissed makes keys hot, as of now, that became hot and cooled while nobody owned the
// partition: nobody has published them. The detector then cools them when their hold is over and
// their windows are below the exit, as if they had been found now. What the previous owner had
// judged is left as that one published it, and so is what is older than a hand-over takes.
func (w *worker) adoptMissed(left inheritance) (missed []rules.Hot) {
	if left.judged.IsZero() {
		return nil
	}
	known := make(map[rules.Key]bool)
	for _, all := range [][]rules.Hot{left.hot, w.detector.Listed()} {
		for i := range all {
			known[all[i].Key] = true
		}
	}
	since := later(left.judged.Add(-heartbeat), w.now.Add(-w.source.cfg.handOver()))
	for key, h := range w.gate.found {
		if h.Since.After(since) && !known[key] {
			h.Since = w.now
			missed = append(missed, h)
		}
	}
	w.detector.Adopt(missed, w.now)
	return missed
}

// moved reports whether a rule exists and has its home in another partition.
func (w *worker) moved(id string) bool {
	rules := w.rules.ByNumber()
	for i, home := range homes(rules, w.parts) {
		if r := &rules.Rules[i]; r.ID == id && len(r.Hot) > 0 {
			return home >= 0 && home != int(w.partition)
		}
	}
	return false
}

// letGo lets go of what another partition has, when it is time.
func (w *worker) letGo(now time.Time) {
	if len(w.leaving) == 0 || now.Before(w.left) {
		return
	}
	var cool []rules.Hot
	for _, key := range w.leaving {
		cool = append(cool, rules.Hot{Key: key})
	}
	w.leaving = nil
	w.gate.Publish(rules.Change{Cool: cool})
}
