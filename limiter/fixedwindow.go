package limiter

import (
	"time"

	"github.com/hotparam/hotparam/limiter/internal/calendar"
	"github.com/hotparam/hotparam/rules"
)

// fixedFrame is that of the fixed window: the slots are windows, one after the other,
// and the current one is all that counts. A window begins with the first that is taken
// in it, or with a period of the calendar; its end is set with that.
type fixedFrame struct {
	per      int64
	calendar *calendar.Calendar // nil: none
}

func newFixedWindow(q *rules.Quota, now time.Duration) State { return newWindow[fixedFrame](q, now) }

func (fixedFrame) of(q *rules.Quota) fixedFrame {
	f := fixedFrame{per: int64(q.Rate.Per)}
	if q.Calendar != "" {
		f.calendar = calendar.New(q.Calendar, q.Zone)
	}
	return f
}

// slot is, without a calendar, the window that is open, or one that begins now: where
// something is reserved, windows follow each other back to back.
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

// latest is the beginning of a window, whose end is set with that.
func (f fixedFrame) latest(at, _ int64) int64 { return at }

func (f fixedFrame) apart() bool { return true }

// back keeps to the calendar: the window that was current is the one of the new time.
func (f fixedFrame) back(at, before, by, t int64) int64 {
	switch {
	case f.calendar == nil:
		return max(0, at-by)
	case before != noSlot:
		return f.leaves(before)
	}
	return f.slot(t, t)
}

// from takes it that all of a window was taken at the latest instant in it. The new window
// begins with the old one. One that would be over by that instant ends when the old one would
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
