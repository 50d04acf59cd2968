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

func (fixedFrame) of(q *rules.Quota) fixedFrame {
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

func (f fixedFrame) leaves(at int64) int64 {
	if f.calendar != nil {
		_, end := f.calendar.Period(at)
		return end
	}
	return at + f.per
}

func (f fixedFrame) same(as fixedFrame) bool {
	if f.calendar == nil || as.calendar == nil {
		return f.calendar == as.calendar && f.per == as.per
	}
	return f.calendar.Same(as.calendar)
}

func (f fixedFrame) holds(at, t int64) bool { return at <= t && t < f.leaves(at) }

// latest returns the beginning of the window, which determines its end.
func (f fixedFrame) latest(at, _ int64) int64 { return at }

func (f fixedFrame) apart() bool { return true }

// back keeps to the calendar: the current window moves to that of the new time.
func (f fixedFrame) back(at, before, by, t int64) int64 {
	switch {
	case f.calendar == nil:
		return max(0, at-by)
	case before != noSlot:
		return f.leaves(before)
	}
	return f.slot(t, t)
}

// from assumes that all of a window was taken at the latest instant in it. The new window
// begins with the old one. If it would end by that instant, it ends when the old one would
// have, or a new one's length after the instant if that is sooner.
func (f fixedFrame) from(old fixedFrame, at, before, latest int64) int64 {
	latest = max(at, min(latest, old.leaves(at)-1))
	switch {
	case f.calendar != nil:
		return f.slot(latest, latest)
	case before != noSlot:
		return f.slot(latest, before)
	case at+f.per <= latest:
		return min(old.leaves(at), latest+f.per) - f.per
	}
	return at
}
