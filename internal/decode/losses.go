package decode

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// losses are the missing packets, by the time when the loss was noticed. Packets that arrive
// late or out of order are subtracted.
type losses struct {
	noticed  [lossSlots]lossSlot
	settled  time.Time // time of the newest loss that can no longer be recovered
	reported time.Time
	awaited  time.Time // senders not heard yet may lack packets from before it; zero if there are none
}

// lossSlot records the losses noticed during one [Tick].
type lossSlot struct {
	tick int64 // number of the tick
	n    int64 // packets that are still missing
	when time.Time
}

// lossSlots times [Tick] is the time after which a packet no longer makes up for a loss. It is
// longer than the time for which its counts would be accepted.
const lossSlots = 64

// recordMissing records n missing packets, and returns the argument for subtractFound.
func (l *losses) recordMissing(n int64, now time.Time) (tick int64) {
	if l.reported.Sub(now) > lossSlots*Tick {
		*l = losses{} // the clock was set back: the losses are in the future
	}
	tick = tickOf(now)
	s := &l.noticed[ring.Slot(tick, lossSlots)]
	if s.tick != tick {
		if s.n > 0 && s.when.After(l.settled) {
			l.settled = s.when
		}
		*s = lossSlot{tick: tick}
	}
	s.n += n
	s.when = base.Later(s.when, now)
	return tick
}

// tickOf returns the number of the tick that holds an instant.
func tickOf(t time.Time) int64 { return rules.Window{Pane: Tick}.Index(t) }

// subtractFound records that n missing packets have arrived, or that a bound of their counts is
// known.
func (l *losses) subtractFound(tick, n int64) {
	if s := &l.noticed[ring.Slot(tick, lossSlots)]; s.tick == tick {
		s.n = max(0, s.n-n)
	}
}

// report reports to a handler the time of the newest loss, if that has changed.
func (l *losses) report(h Handler) {
	newest := base.Later(l.settled, l.awaited)
	for i := range l.noticed {
		if s := &l.noticed[i]; s.n > 0 && s.when.After(newest) {
			newest = s.when
		}
	}
	if newest.After(l.reported) {
		h.RecordLoss(newest)
	} else if newest.Before(l.reported) {
		h.ReduceLoss(newest)
	}
	l.reported = newest
}
