package kafkasource

import (
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam/wire"
)

// watermark computes the time before which all counts of a partition have arrived.
//
// Each live instance sends to each partition at least once a second, in the order of time:
// what it counted before the start of its newest record has arrived. So that an instance
// whose clock is slow, or that died, delays no other, all counts older than the newest record
// less the grace are taken as complete. While no instance is heard of, though the partition is
// read, the time up to which it is known to be read counts, less the lag of programs that send
// only lines.
//
// An instance is gone only when the log went on without it. A time in which nothing came is
// nobody's absence: the brokers may have been away, or the reader. After such a break those
// that wrote before it come back one by one, so they are awaited (see awaits), by whoever
// reads the partition then.
//
// The watermark uses no clock: where no record arrives, and no leader confirms that there is
// none, time stands still.
type watermark struct {
	grace, lag time.Duration
	senders    map[string]*progress
	strangers  bool          // instances that wrote before the break are not all known
	appended   time.Time     // when the newest record was taken by its broker
	heard      time.Time     // when the newest record came
	sure       time.Time     // all that was in the partition then has come
	resumed    time.Time     // when the partition went on after the last break
	lived      time.Duration // how long the log went on, a beat of each break
	complete   time.Time
}

// progress is the state of one instance.
type progress struct {
	incarnation uint64
	start       time.Time // of its newest record
	heard       time.Time
	lived       time.Duration // of the log, when it was heard
}

const (
	// liveFor is how long a silent instance counts as live: ten of its heartbeats.
	liveFor = 10 * time.Second
	// beat is the longest pause in a partition to which instances write: two of their
	// heartbeats. A longer one is a break, of which a beat counts as time that went on.
	beat = 2 * time.Second
	// maxSenders bounds the instances. More than that delay no other.
	maxSenders = 100_000
)

// newWatermark returns the watermark of a reader of what arrived since from.
func newWatermark(from time.Time, grace, lag time.Duration) *watermark {
	return &watermark{
		grace: grace, lag: lag, senders: make(map[string]*progress), strangers: true,
		appended: from, heard: from, resumed: from, complete: from,
	}
}

// knows names all instances that were live when the partition was read last.
func (w *watermark) knows(names []string) {
	w.strangers = false
	for _, name := range names {
		if w.senders[name] == nil && len(w.senders) < maxSenders {
			w.senders[name] = new(progress)
		}
	}
}

// record records when a record was appended, and when it came.
func (w *watermark) record(appended, heard time.Time) {
	if appended.Sub(w.appended) > beat {
		w.resumed = later(w.resumed, heard)
	}
	w.lived += max(0, min(heard.Sub(w.heard), beat))
	w.appended, w.heard = later(w.appended, appended), later(w.heard, heard)
}

// sent records that an instance was heard of at a time, by a record of counts since start.
func (w *watermark) sent(m *wire.Meta, start, heard time.Time) {
	p := w.senders[string(m.Instance)]
	if p == nil {
		if len(w.senders) >= maxSenders {
			return
		}
		p = new(progress)
		w.senders[string(m.Instance)] = p
	}
	if p.incarnation != m.Incarnation {
		*p = progress{incarnation: m.Incarnation, heard: p.heard}
	}
	// Counts that were held back are older than those sent before them.
	p.start, p.heard, p.lived = later(p.start, start), later(p.heard, heard), w.lived
}

// reached records that all records that were in the partition at a time have been read.
func (w *watermark) reached(asked time.Time) {
	if asked.Sub(later(w.sure, w.heard)) > beat {
		w.resumed = later(w.resumed, asked)
	}
	w.sure = later(w.sure, asked)
}

// advance computes complete. elsewhere is when instances were heard of in other partitions:
// one that is heard there lives, and if it is not heard here it cannot write to this
// partition.
func (w *watermark) advance(elsewhere map[string]time.Time) time.Time {
	if w.sinceBreak() > liveFor || w.lived > liveFor {
		w.strangers = false
	}
	var slowest time.Time
	newest := w.resumed // sign of life
	for name, p := range w.senders {
		if w.lived-p.lived > liveFor && w.heard.Sub(elsewhere[name]) > liveFor {
			delete(w.senders, name)
			continue
		}
		newest = later(newest, later(p.heard, elsewhere[name]))
		if slowest.IsZero() || p.start.Before(slowest) {
			slowest = p.start
		}
	}
	isRead := w.sure.Sub(newest) > liveFor // and nobody writes
	switch {
	case len(w.senders) > 0 && !isRead:
		w.complete = later(w.complete, later(slowest, w.appended.Add(-w.grace)))
	case isRead || !w.strangers && !w.sure.IsZero():
		w.complete = later(w.complete, w.sure.Add(-w.lag))
	}
	return w.complete
}

// awaits reports whether instances that wrote before the last break may still come back. It
// is so for liveFor at most: one that has not come by then died during the break.
func (w *watermark) awaits() bool {
	if w.sinceBreak() > liveFor {
		return false
	}
	for _, p := range w.senders {
		if p.heard.Before(w.resumed) {
			return true
		}
	}
	return w.strangers
}

// sinceBreak returns for how long the partition has gone on.
func (w *watermark) sinceBreak() time.Duration { return later(w.sure, w.heard).Sub(w.resumed) }

// names returns the instances that are live.
func (w *watermark) names() []string { return slices.Collect(maps.Keys(w.senders)) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
