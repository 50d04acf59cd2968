package limiter

import (
	"time"

	"github.com/hotparam/hotparam/limiter/internal/calendar"
	"github.com/hotparam/hotparam/rules"
)

// fixedFrame is the frame of the fixed window. The slots are windows, one after the other, and
// only the current one counts. A window begins with its first take, or with a period of the
// calendar. Its end is determined with its beginning.
type fixedFrame struct {
	per      int64
	calendar *calendar.Calendar // nil if there is none
}

func newFixedWindow(q *rules.Quota, now time.Duration) State { return newWindow[fixedFrame](q, now) }

func (fixedFrame) forQuota(q *rules.Quota) fixedFrame {
	f := fixedFrame{per: int64(q.Rate.Per)}
	if q.Calendar != "" {
		f.calendar = calendar.New(q.Calendar, q.Zone)
	}
	return f
}

// slot returns the beginning of the calendar's period. Without a calendar it returns that of
// the open window, or t if none is open. After reservations, windows follow each other back to
// back.
func (f fixedFrame) slot(t, newest int64) int64 {
	if f.calendar != nil {
		start, _ := f.calendar.Period(t)
		return max(0, start)
	}
	since := (t - newest) % f.per
	if since < 0 {
		since += f.per
	}
	return max(0, t-since)
}

func (f fixedFrame) expiryOf(start int64) int64 {
	if f.calendar != nil {
		_, end := f.calendar.Period(start)
		return end
	}
	return start + f.per
}

func (f fixedFrame) equals(other fixedFrame) bool {
	if f.calendar == nil || other.calendar == nil {
		return f.calendar == other.calendar && f.per == other.per
	}
	return f.calendar.Same(other.calendar)
}

func (f fixedFrame) holds(start, t int64) bool { return start <= t && t < f.expiryOf(start) }

// latestIn returns the beginning of the window, which determines its end.
func (f fixedFrame) latestIn(start, _ int64) int64 { return start }

func (f fixedFrame) slotIsWindow() bool { return true }

// placeAfterReset keeps to the calendar: the current window moves to that of the new time.
func (f fixedFrame) placeAfterReset(start, before, distance, t int64) int64 {
	switch {
	case f.calendar == nil:
		return max(0, start-distance)
	case before != noSlot:
		return f.expiryOf(before)
	}
	return f.slot(t, t)
}

// placeFrom assumes that all of a window was taken at the latest instant in it. The new window
// begins with the old one. If it would end by that instant, it ends when the old one would
// have, or a new one's length after the instant if that is sooner.
func (f fixedFrame) placeFrom(old fixedFrame, start, before, latest int64) int64 {
	latest = max(start, min(latest, old.expiryOf(start)-1))
	switch {
	case f.calendar != nil:
		return f.slot(latest, latest)
	case before != noSlot:
		return f.slot(latest, before)
	case start+f.per <= latest:
		return min(old.expiryOf(start), latest+f.per) - f.per
	}
	return start
}
