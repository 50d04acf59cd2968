package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// rateMeter counts a hot key in slots of a tenth of a second, for its current rate. A window cannot
// provide that: a window of a minute has the same count five seconds after the last request,
// and one of an hour has panes of a minute.
type rateMeter struct {
	span   int64 // number of slots of the rate
	began  int64 // first slot that was counted from its start on
	counts ring.Counts
}

const meterSlot = base.FlushInterval

// meterSlots divides time into slots.
var meterSlots = rules.Window{Pane: meterSlot}

// meterSlack is the number of slots that are kept in addition to the span, as counts arrive
// late and the rate is that of the time before the lag.
const meterSlack = int64(decode.DefaultGrace / meterSlot)

func newMeter(span time.Duration, now time.Time) *rateMeter {
	slots := max(1, int64((span+meterSlot-1)/meterSlot))
	return &rateMeter{span: slots, began: meterSlots.Index(now) + 1, counts: ring.New(slots + meterSlack)}
}

// length returns the time over which the rate is taken.
func (m *rateMeter) length() time.Duration { return time.Duration(m.span) * meterSlot }

// add counts n at an instant. It ignores instants that are too old.
func (m *rateMeter) add(when time.Time, n int64) { m.counts.Add(meterSlots.Index(when), n) }

// perSecond returns the rate over the span before complete, the instant up to which all counts
// have arrived. It returns false while the meter has not run for that long.
func (m *rateMeter) perSecond(complete time.Time) (float64, bool) {
	last := max(meterSlots.Index(complete)-1, m.counts.Last-meterSlack) // in case complete does not advance
	if last-m.span+1 < m.began {
		return 0, false
	}
	return float64(m.counts.Sum(last, m.span)) / m.length().Seconds(), true
}
