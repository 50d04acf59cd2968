// Package calendar finds the natural periods of a time zone: the second, hour, day or month
// that an instant is in.
package calendar

import (
	"sync"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Window returns the period of q's calendar, in its zone, that now is in: from start to
// before end. All are times since the Unix epoch. Days have 23 or 25 hours and months 28 to
// 31 days where the zone has it so; a week begins on Monday. An unknown zone is taken for
// UTC, and an unknown calendar for a second; [rules.Quota.Validate] reports both.
func Window(q *rules.Quota, now time.Duration) (start, end time.Duration) {
	from, to := New(q.Calendar, q.Zone).Period(min(max(int64(now), 0), 1<<62))
	return time.Duration(from), time.Duration(to)
}

// Calendar is the natural periods of a zone. It remembers the last period, so that it rarely
// computes one. It is not for concurrent use.
type Calendar struct {
	kind       rules.Calendar
	zone       *time.Location
	start, end int64
}

// New returns the Calendar of a kind and of a zone by its IANA name.
func New(kind rules.Calendar, zone string) *Calendar {
	return &Calendar{kind: kind, zone: zoneNamed(zone)}
}

// Same reports whether c and as have the same periods.
func (c *Calendar) Same(as *Calendar) bool { return c.kind == as.kind && c.zone == as.zone }

// Period returns the period that t, in ns since the Unix epoch, is in.
func (c *Calendar) Period(t int64) (start, end int64) {
	if t < c.start || t >= c.end {
		c.start, c.end = c.bounds(t)
	}
	return c.start, c.end
}

func (c *Calendar) bounds(t int64) (start, end int64) {
	local := time.Unix(0, t).In(c.zone)
	y, m, d := local.Date()
	switch c.kind {
	case rules.CalendarYear:
		return c.midnight(y, time.January, 1), c.midnight(y+1, time.January, 1)
	case rules.CalendarMonth:
		return c.midnight(y, m, 1), c.midnight(y, m+1, 1)
	case rules.CalendarWeek:
		monday := d - (int(local.Weekday())+6)%7
		return c.midnight(y, m, monday), c.midnight(y, m, monday+7)
	case rules.CalendarDay:
		return c.midnight(y, m, d), c.midnight(y, m, d+1)
	}
	// An hour that comes twice is two periods, and a change of the clock cuts one off.
	length := int64(time.Second)
	if c.kind == rules.CalendarMinute || c.kind == rules.CalendarHour {
		length = int64(rules.CalendarPeriods[c.kind])
	}
	offset := zoneOffset(local)
	into := (t + int64(offset)*int64(time.Second)) % length
	if into < 0 {
		into += length
	}
	start, end = t-into, t-into+length
	first, last := local.ZoneBounds()
	if !first.IsZero() && first.UnixNano() > start && zoneOffset(first.Add(-1)) != offset {
		start = first.UnixNano()
	}
	if !last.IsZero() && last.UnixNano() < end && zoneOffset(last) != offset {
		end = last.UnixNano()
	}
	return start, end
}

// zoneOffset returns how many seconds the zone's clock is ahead of UTC.
func zoneOffset(t time.Time) int {
	_, offset := t.Zone()
	return offset
}

// midnight returns the first instant of a day, or the instant after the gap if the zone
// skipped that day. On days that begin with a change of the clock, midnight may come twice or
// never, and [time.Date] may return either instant.
func (c *Calendar) midnight(y int, m time.Month, d int) int64 {
	wall := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
	local := time.Date(y, m, d, 0, 0, 0, 0, c.zone)
	first, last := local.ZoneBounds()
	offset := zoneOffset(local)
	switch shown := local.Unix() + int64(offset); {
	case shown < wall:
		local = last
	case shown > wall:
		local = first
	case !first.IsZero():
		was := zoneOffset(first.Add(-1))
		if earlier := local.Add(time.Duration(offset-was) * time.Second); earlier.Before(first) {
			local = earlier
		}
	}
	return local.UnixNano()
}

// zones caches the zones by name, since loading one reads a file. There are at most as many as
// the zone database has.
var zones sync.Map

func zoneNamed(name string) *time.Location {
	if l, ok := zones.Load(name); ok {
		return l.(*time.Location)
	}
	l, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	zones.Store(name, l)
	return l
}
