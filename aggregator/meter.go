package aggregator

import (
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/ring"
	"github.com/hotparam/hotparam/rules"
)

// meter counts a hot key in slots of a tenth of a second, for its current rate. A window cannot
// provide that: a window of a minute has the same count five seconds after the last request,
// and one of an hour has panes of a minute.
type meter struct {
	span   int64 // number of slots of the rate
	began  int64 // first slot that was counted from its start on
	newest int64
	counts []int64 // counts of the newest slots
}

const meterSlot = base.FlushInterval

// meterSlots divides time into slots.
var meterSlots = rules.Window{Pane: meterSlot}

// meterSlack is the number of slots that are kept in addition to the span, as counts arrive
// late and the rate is that of the time before the lag.
const meterSlack = int64(decode.DefaultGrace / meterSlot)

func newMeter(span time.Duration, now time.Time) *meter {
	slots := max(1, int64((span+meterSlot-1)/meterSlot))
	slot := meterSlots.Index(now)
	return &meter{span: slots, began: slot + 1, newest: slot, counts: make([]int64, slots+meterSlack)}
}

// length returns the time over which the rate is taken.
func (m *meter) length() time.Duration { return time.Duration(m.span) * meterSlot }

// advanceTo moves on to a slot.
func (m *meter) advanceTo(slot int64) {
	if slot-m.newest >= int64(len(m.counts)) {
		clear(m.counts)
		m.newest = slot
	}
	for m.newest < slot {
		m.newest++
		m.counts[ring.Slot(m.newest, int64(len(m.counts)))] = 0
	}
}

// add counts n at an instant. It ignores instants that are too old.
func (m *meter) add(when time.Time, n int64) {
	slot := meterSlots.Index(when)
	m.advanceTo(slot)
	if m.newest-slot < int64(len(m.counts)) {
		m.counts[ring.Slot(slot, int64(len(m.counts)))] += n
	}
}

// perSecond returns the rate over the span before complete, the instant up to which all counts
// have arrived. It returns false while the meter has not run for that long.
func (m *meter) perSecond(complete time.Time) (float64, bool) {
	end := meterSlots.Index(complete)     // the slot after the last one
	end = max(end, m.newest+1-meterSlack) // in case complete does not advance
	if end-m.span < m.began {
		return 0, false
	}
	sum := int64(0)
	for slot := end - m.span; slot < min(end, m.newest+1); slot++ {
		if m.newest-slot < int64(len(m.counts)) {
			sum += m.counts[ring.Slot(slot, int64(len(m.counts)))]
		}
	}
	return float64(sum) / m.length().Seconds(), true
}
