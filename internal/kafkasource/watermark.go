package kafkasource

import (
	"maps"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// watermark computes the time before which all counts of a partition have arrived.
//
// Each live instance sends to each partition at least once a second, in the order of time. So
// all its counts from before the start of its newest record have arrived. An instance whose
// clock is slow, or that died, must not delay the others. So counts older than the newest record
// less the grace are taken as complete. If the partition is read and no instance has been heard
// for liveFor, the time up to which it has been read counts, less the lag of programs that send
// only lines.
//
// An instance has ended only if the log continued without it. A pause in which no record arrived
// proves nothing: the brokers may have been unavailable, or this reader. After such a break the
// instances return one by one. So all that wrote before it are awaited (see isAwaiting), even by
// a worker that starts after the break.
//
// The watermark uses no clock. If no record arrives, and no leader confirms that there is none,
// time stands still.
type watermark struct {
	grace, lag time.Duration
	senders    map[string]*progress
	unknown    bool          // instances that are not in senders may have written before the last break
	appended   time.Time     // time at which a broker received the newest record
	heard      time.Time     // time at which the newest record arrived
	sure       time.Time     // all that was in the partition then has arrived
	resumed    time.Time     // end of the last break
	active     time.Duration // sum of the pauses between records, each counted as maxPause at most
	complete   time.Time
}

// progress is the state of one instance.
type progress struct {
	incarnation uint64
	start       time.Time // start of its newest record
	heard       time.Time
	active      time.Duration // the watermark's active when it was heard
}

const (
	// liveFor is how long a silent instance counts as live: ten of its heartbeats.
	liveFor = 10 * time.Second
	// maxPause is the longest pause between records in a partition that instances can write
	// to: two of their heartbeats. A longer one is a break.
	maxPause = 2 * time.Second
	// maxSenders bounds the instances. Further ones delay no others.
	maxSenders = 100_000
)

// newWatermark returns the watermark of a partition that is read from the time from.
func newWatermark(from time.Time, grace, lag time.Duration) *watermark {
	return &watermark{
		grace: grace, lag: lag, senders: make(map[string]*progress), unknown: true,
		appended: from, heard: from, resumed: from, complete: from,
	}
}

// setKnown records that no instances other than the named ones were live before the first record
// that is read.
func (w *watermark) setKnown(names []string) {
	w.unknown = false
	for _, name := range names {
		if w.senders[name] == nil && len(w.senders) < maxSenders {
			w.senders[name] = new(progress)
		}
	}
}

// record records when a record was appended, and when it arrived.
func (w *watermark) record(appended, heard time.Time) {
	if appended.Sub(w.appended) > maxPause {
		w.resumed = base.Later(w.resumed, heard)
	}
	w.active += max(0, min(heard.Sub(w.heard), maxPause))
	w.appended, w.heard = base.Later(w.appended, appended), base.Later(w.heard, heard)
}

// sent records that an instance was heard, by a record of counts since start.
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
	p.start, p.heard, p.active = base.Later(p.start, start), base.Later(p.heard, heard), w.active
}

// reached records that all records that were in the partition at asked have been read.
func (w *watermark) reached(asked time.Time) {
	if asked.Sub(base.Later(w.sure, w.heard)) > maxPause {
		w.resumed = base.Later(w.resumed, asked)
	}
	w.sure = base.Later(w.sure, asked)
}

// advance computes complete. elsewhere holds the time at which each instance was last heard in
// any partition. An instance that is heard there, but not here, is alive and cannot write to
// this partition.
func (w *watermark) advance(elsewhere map[string]time.Time) time.Time {
	if w.sinceBreak() > liveFor || w.active > liveFor {
		w.unknown = false
	}
	var slowest time.Time
	newest := w.resumed // time at which an instance was last heard, or could not be
	for name, p := range w.senders {
		if w.active-p.active > liveFor && w.heard.Sub(elsewhere[name]) > liveFor {
			delete(w.senders, name)
			continue
		}
		newest = base.Later(newest, base.Later(p.heard, elsewhere[name]))
		if slowest.IsZero() || p.start.Before(slowest) {
			slowest = p.start
		}
	}
	isSilent := w.sure.Sub(newest) > liveFor
	switch {
	case len(w.senders) > 0 && !isSilent:
		w.complete = base.Later(w.complete, base.Later(slowest, w.appended.Add(-w.grace)))
	case isSilent || !w.unknown && !w.sure.IsZero():
		w.complete = base.Later(w.complete, w.sure.Add(-w.lag))
	}
	return w.complete
}

// isAwaiting reports whether an instance that wrote before the last break may still return. An
// instance that has not returned liveFor after the break has died.
func (w *watermark) isAwaiting() bool {
	if w.sinceBreak() > liveFor {
		return false
	}
	for _, p := range w.senders {
		if p.heard.Before(w.resumed) {
			return true
		}
	}
	return w.unknown
}

// sinceBreak returns the time since the last break ended.
func (w *watermark) sinceBreak() time.Duration { return base.Later(w.sure, w.heard).Sub(w.resumed) }

// liveNames returns the names of the live instances.
func (w *watermark) liveNames() []string { return slices.Collect(maps.Keys(w.senders)) }
