package kafkasource

import (
	"time"

	"github.com/hotparam/hotparam/wire"
)

// watermark tells until when all counts of a partition have come.
//
// Each live instance sends to each partition at least once a second, in the order
// of time: what it counted before the start of its newest record has come. So
// that an instance whose clock is slow, or that died, holds nobody up, all of
// before the newest record less the grace is taken as complete. An instance that
// was not heard of for a while by the time up to which the partition is known to
// be read has ended. While there is none, that time itself counts, less the lag
// of programs that send lines alone; but not before those that there may have been
// at the beginning had the time to be heard.
//
// Nothing here looks at a clock: where no record comes, and nobody can tell that
// there is none, time stands still.
type watermark struct {
	grace, lag time.Duration
	begun      time.Time
	senders    map[string]*progress
	appended   time.Time // when the newest record was taken by its broker
	sure       time.Time // all that was in the partition then has come
	complete   time.Time
}

// progress is what is known of one instance.
type progress struct {
	incarnation uint64
	start       time.Time // of its newest record
	heard       time.Time
}

const (
	// liveFor is how long an instance that is silent counts as live: ten of its
	// heartbeats.
	liveFor = 10 * time.Second
	// maxSenders bounds them; what is more holds nobody up.
	maxSenders = 100_000
)

// newWatermark begins to read at a time what came since from.
func newWatermark(from, begun time.Time, grace, lag time.Duration) *watermark {
	return &watermark{grace: grace, lag: lag, begun: begun, senders: make(map[string]*progress), complete: from}
}

// record notes when a record was taken.
func (w *watermark) record(appended time.Time) { w.appended = later(w.appended, appended) }

// sent notes that an instance was heard of at a time, by a record of counts since
// start.
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
	// Counts that were held back are older than what was sent before them.
	p.start, p.heard = later(p.start, start), later(p.heard, heard)
}

// reached notes that all that was in the partition at a time has come.
func (w *watermark) reached(asked time.Time) { w.sure = later(w.sure, asked) }

// advance brings complete up to what is known. elsewhere is when instances were
// heard of in other partitions: one that is heard there lives, and if it is not
// heard here this partition cannot be written.
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
