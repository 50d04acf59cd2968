package kafkasource

import (
	"time"

	"github.com/hotparam/hotparam/wire"
)

// watermark computes the time before which all counts of a partition have arrived.
//
// Each live instance sends to each partition at least once a second, in the order of time:
// what it counted before the start of its newest record has arrived. So that an instance
// whose clock is slow, or that died, delays no other, all counts older than the newest record
// less the grace are taken as complete. An instance that was not heard of for a while, by the
// time up to which the partition is known to be read, has ended. While there is no instance,
// that time itself counts, less the lag of programs that send only lines, but not before
// instances that may have been there at the beginning had the time to send.
//
// The watermark uses no clock: where no record arrives, and no leader confirms that there is
// none, time stands still.
type watermark struct {
	grace, lag time.Duration
	begun      time.Time
	senders    map[string]*progress
	appended   time.Time // when the newest record was taken by its broker
	sure       time.Time // all that was in the partition then has come
	complete   time.Time
}

// progress is the state of one instance.
type progress struct {
	incarnation uint64
	start       time.Time // of its newest record
	heard       time.Time
}

const (
	// liveFor is how long a silent instance counts as live: ten of its heartbeats.
	liveFor = 10 * time.Second
	// maxSenders bounds the instances. More than that delay no other.
	maxSenders = 100_000
)

// newWatermark returns the watermark of a reader that begins at begun to read what arrived
// since from.
func newWatermark(from, begun time.Time, grace, lag time.Duration) *watermark {
	return &watermark{grace: grace, lag: lag, begun: begun, senders: make(map[string]*progress), complete: from}
}

// record records when a record was appended.
func (w *watermark) record(appended time.Time) { w.appended = later(w.appended, appended) }

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
	p.start, p.heard = later(p.start, start), later(p.heard, heard)
}

// reached records that all records that were in the partition at a time have been read.
func (w *watermark) reached(asked time.Time) { w.sure = later(w.sure, asked) }

// advance computes complete. elsewhere is when instances were heard of in other partitions:
// one that is heard there lives, and if it is not heard here it cannot write to this
// partition.
func (w *watermark) advance(elsewhere map[string]time.Time) time.Time {
	var slowest time.Time
	for name, p := range w.senders {
		if w.sure.Sub(later(p.heard, elsewhere[name])) > liveFor {
			delete(w.senders, name)
			continue
		}
		if slowest.IsZero() || p.start.Before(slowest) {
			slowest = p.start
		}
	}
	switch {
	case len(w.senders) > 0:
		w.complete = later(w.complete, later(slowest, w.appended.Add(-w.grace)))
	case w.sure.Sub(w.begun) > liveFor:
		w.complete = later(w.complete, w.sure.Add(-w.lag))
	}
	return w.complete
}

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
