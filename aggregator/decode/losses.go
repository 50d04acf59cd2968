package decode

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/internal/ring"
)

// losses are the packets that went missing, by when that was noticed: what comes
// after all, late and out of turn, makes up for it.
type losses struct {
	noticed  [lossSlots]lossSlot
	settled  time.Time // newest of those that come no more
	reported time.Time
}

// lossSlot is a short time.
type lossSlot struct {
	at   int64 // its number
	n    int64 // packets that are still missing
	when time.Time
}

// lossSlots times [Tick] is how late a packet may come and still make up for a
// loss: longer than its counts would be taken.
const lossSlots = 64

// miss notes n packets that are missing, and tells what found needs to know.
func (l *losses) miss(n int64, now time.Time) (at int64) {
	at = tickOf(now)
	s := &l.noticed[ring.Slot(at, lossSlots)]
	if s.at != at {
		if s.n > 0 && s.when.After(l.settled) {
			l.settled = s.when
		}
		*s = lossSlot{at: at}
	}
	s.n += n
	if now.After(s.when) {
		s.when = now
	}
	return at
}

// tickOf returns the number of the tick that holds an instant.
func tickOf(t time.Time) int64 { return hotparam.Window{Pane: Tick}.Index(t) }

// found notes that a packet came after all.
func (l *losses) found(at int64) {
	if s := &l.noticed[ring.Slot(at, lossSlots)]; s.at == at && s.n > 0 {
		s.n--
	}
}

// report tells a handler when the newest loss was, if that has changed.
func (l *losses) report(h Handler) {
	newest := l.settled
	for i := range l.noticed {
		if s := &l.noticed[i]; s.n > 0 && s.when.After(newest) {
			newest = s.when
		}
	}
	if newest.After(l.reported) {
		h.Lost(newest)
	} else if newest.Before(l.reported) {
		h.Found(newest)
	}
	l.reported = newest
}
