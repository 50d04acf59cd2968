package calendar

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // has the tests' zones on every machine

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func TestCalendarWindow(t *testing.T) {
	for _, c := range []struct {
		name       string
		calendar   rules.Calendar
		zone       string
		now        string
		start, end string
	}{
		{"second", rules.CalendarSecond, "", "2026-11-21T23:02:35.7Z", "2026-11-21T23:02:35Z", "2026-11-21T23:02:36Z"},
		{"minute", rules.CalendarMinute, "", "2026-11-21T23:02:35Z", "2026-11-21T23:02:00Z", "2026-11-21T23:03:00Z"},
		{"the beginning belongs to it", rules.CalendarMinute, "", "2026-11-21T23:02:00Z", "2026-11-21T23:02:00Z", "2026-11-21T23:03:00Z"},
		{"hour", rules.CalendarHour, "", "2026-11-21T23:02:35Z", "2026-11-21T23:00:00Z", "2026-11-22T00:00:00Z"},
		{"hour of a zone off by 45 minutes", rules.CalendarHour, "Asia/Kathmandu", "2026-11-21T23:02:35Z", "2026-11-21T22:15:00Z", "2026-11-21T23:15:00Z"},
		{"day", rules.CalendarDay, "", "2026-11-21T23:02:35Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"day of a zone", rules.CalendarDay, "Asia/Tokyo", "2026-11-21T23:02:35Z", "2026-11-21T15:00:00Z", "2026-11-22T15:00:00Z"},
		{"day of 23 hours", rules.CalendarDay, "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"day of 25 hours", rules.CalendarDay, "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"day without a midnight", rules.CalendarDay, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"day of two midnights", rules.CalendarDay, "America/Havana", "2025-11-02T12:00:00Z", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z"},
		{"day before one that was left out", rules.CalendarDay, "Pacific/Apia", "2011-12-29T20:00:00-10:00", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"hour that comes twice, first", rules.CalendarHour, "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"hour that comes twice, second", rules.CalendarHour, "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"hour cut to half", rules.CalendarHour, "Australia/Lord_Howe", "2026-10-03T15:40:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"hour cut at its end", rules.CalendarHour, "Asia/Pyongyang", "2018-05-04T14:40:00Z", "2018-05-04T14:30:00Z", "2018-05-04T15:00:00Z"},
		{"week begins on Monday", rules.CalendarWeek, "", "2026-11-21T23:02:35Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"week of a Sunday", rules.CalendarWeek, "", "2026-11-22T23:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},
		{"week of a Monday", rules.CalendarWeek, "", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"week over the new year", rules.CalendarWeek, "America/New_York", "2026-01-01T12:00:00Z", "2025-12-29T05:00:00Z", "2026-01-05T05:00:00Z"},
		{"month of 28 days", rules.CalendarMonth, "", "2026-02-10T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"month of 29 days", rules.CalendarMonth, "", "2028-02-29T23:59:59Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"December", rules.CalendarMonth, "", "2026-12-31T23:59:59.999999999Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"year", rules.CalendarYear, "", "2026-07-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"leap year of a zone", rules.CalendarYear, "Asia/Kolkata", "2028-07-01T00:00:00Z", "2027-12-31T18:30:00Z", "2028-12-31T18:30:00Z"},
		{"a zone that is not there is UTC", rules.CalendarDay, "Mars/Olympus", "2026-11-21T23:02:35Z", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339Nano, c.now)
			if err != nil {
				t.Fatal(err)
			}
			start, end := Window(&rules.Quota{Calendar: c.calendar, Zone: c.zone}, time.Duration(now.UnixNano()))
			show := func(d time.Duration) string { return time.Unix(0, int64(d)).UTC().Format(time.RFC3339Nano) }
			if show(start) != c.start || show(end) != c.end {
				t.Fatalf("%s of %s: %s to %s, want %s to %s", c.calendar, c.now, show(start), show(end), c.start, c.end)
			}
		})
	}
}

// calendarLabel returns a period's name on a wall calendar.
func calendarLabel(c rules.Calendar, t time.Time) string {
	switch c {
	case rules.CalendarYear:
		return t.Format("2006")
	case rules.CalendarMonth:
		return t.Format("2006-01")
	case rules.CalendarWeek:
		y, w := t.ISOWeek()
		return fmt.Sprint(y, w)
	case rules.CalendarDay:
		return t.Format("2006-01-02")
	}
	_, offset := t.Zone()
	return t.Truncate(time.Nanosecond).Format(map[rules.Calendar]string{
		rules.CalendarHour: "2006-01-02T15", rules.CalendarMinute: "2006-01-02T15:04", rules.CalendarSecond: "2006-01-02T15:04:05",
	}[c]) + fmt.Sprint(offset)
}

// TestCalendarWindowBounds checks that a wall calendar shows the same period from the start to
// before the end, and another one outside.
func TestCalendarWindowBounds(t *testing.T) {
	names := []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu",
		"Pacific/Apia", "Pacific/Kwajalein", "Asia/Gaza", "Africa/Cairo", "Antarctica/Troll", "America/Nuuk", "Africa/Casablanca", "Asia/Beirut", "Asia/Pyongyang",
	}
	calendars := []rules.Calendar{
		rules.CalendarSecond, rules.CalendarMinute, rules.CalendarHour, rules.CalendarDay,
		rules.CalendarWeek, rules.CalendarMonth, rules.CalendarYear,
	}
	rapid.Check(t, func(t *rapid.T) {
		name, kind := rapid.SampledFrom(names).Draw(t, "zone"), rapid.SampledFrom(calendars).Draw(t, "calendar")
		zone := zoneNamed(name)
		at := time.Unix(rapid.Int64Range(365*86400, 70*365*86400).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).In(zone)
		if rapid.Bool().Draw(t, "near a change") {
			if _, change := at.ZoneBounds(); !change.IsZero() {
				at = change.Add(time.Duration(rapid.Int64Range(-26*3600, 26*3600).Draw(t, "off")) * time.Second)
			}
		}
		from, to := Window(&rules.Quota{Calendar: kind, Zone: name}, time.Duration(at.UnixNano()))
		start, end := time.Unix(0, int64(from)).In(zone), time.Unix(0, int64(to)).In(zone)
		if start.After(at) || !end.After(at) {
			t.Fatalf("%v is not in %v to %v", at, start, end)
		}
		label := calendarLabel(kind, at)
		for _, in := range []time.Time{start, end.Add(-1)} {
			if calendarLabel(kind, in) != label {
				t.Fatalf("%v to %v: %v is not of %s", start, end, in, label)
			}
		}
		for _, out := range []time.Time{start.Add(-1), end} {
			if calendarLabel(kind, out) == label {
				t.Fatalf("%v to %v: %v is of %s", start, end, out, label)
			}
		}
	})
}
