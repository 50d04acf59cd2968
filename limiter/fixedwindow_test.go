package limiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

const sec = time.Second

// Another clock is of the same calendar.
func TestFixedWindowCalendar(t *testing.T) {
	q := windowQuota(rules.FixedWindow, 2, 24*time.Hour)
	q.Calendar, q.Zone = rules.CalendarDay, "Europe/Berlin"
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		t.Fatal(err)
	}
	midnight := func(day int) time.Duration {
		return time.Duration(time.Date(2026, time.October, day, 0, 0, 0, 0, zone).UnixNano())
	}
	noon := midnight(24) + 12*time.Hour
	runWindowSteps(t, newWindowState(t, q, noon), []windowStep{
		{noon, Request{N: 2}, allowedResult(2, 0, 12*time.Hour).took(2, midnight(24))},
		{noon, Request{Kind: Reserve, N: 1, Within: 24 * time.Hour}, allowedResult(2, 0, 37*time.Hour).took(1, midnight(25)).after(12 * time.Hour)},
		{midnight(20), Request{N: 1}, deniedResult(2, 0, 24*time.Hour, 48*time.Hour)},
		{midnight(21), Request{N: 1}, allowedResult(2, 0, 24*time.Hour).took(1, midnight(21))},
	})
}

func TestFixedWindowAdapt(t *testing.T) {
	day := func(n int64) *rules.Quota {
		q := windowQuota(rules.FixedWindow, n, 24*time.Hour)
		q.Calendar = rules.CalendarDay
		return q
	}
	at := 30*time.Hour + 30*sec
	for name, c := range map[string]struct {
		from, to *rules.Quota
		then     time.Duration
		want     Result // result of a Peek of 1 after three of five were taken at 30 h
	}{
		"A7: a higher limit":    {windowQuota(rules.FixedWindow, 5, 60*sec), windowQuota(rules.FixedWindow, 9, 60*sec), at, allowedResult(9, 6, 30*sec)},
		"A7: a lower limit":     {windowQuota(rules.FixedWindow, 5, 60*sec), windowQuota(rules.FixedWindow, 2, 60*sec), at, deniedResult(2, 0, 30*sec, 30*sec)},
		"A7: a longer window":   {windowQuota(rules.FixedWindow, 5, 60*sec), windowQuota(rules.FixedWindow, 5, 90*sec), at, allowedResult(5, 2, 60*sec)},
		"A7: a shorter window":  {windowQuota(rules.FixedWindow, 5, 60*sec), windowQuota(rules.FixedWindow, 5, 40*sec), at, allowedResult(5, 2, 10*sec)},
		"A7: one that is over":  {windowQuota(rules.FixedWindow, 5, 60*sec), windowQuota(rules.FixedWindow, 5, 20*sec), at, allowedResult(5, 2, 20*sec)},
		"over soon anyway":      {windowQuota(rules.FixedWindow, 5, 60*sec), windowQuota(rules.FixedWindow, 5, 50*sec), at + 25*sec, allowedResult(5, 2, 5*sec)},
		"A7: a calendar":        {windowQuota(rules.FixedWindow, 5, 60*sec), day(5), at, allowedResult(5, 2, 18*time.Hour-30*sec)},
		"A7: no calendar":       {day(5), windowQuota(rules.FixedWindow, 5, 60*sec), at, allowedResult(5, 2, 60*sec)},
		"the same":              {day(5), day(5), at, allowedResult(5, 2, 18*time.Hour-30*sec)},
		"what has left is gone": {windowQuota(rules.FixedWindow, 5, 20*sec), windowQuota(rules.FixedWindow, 5, 90*sec), at, allowedResult(5, 5, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWindowState(t, c.from, 0)
			s.Do(at-30*sec, Request{N: 3})
			if !s.(quotaSwitcher).Adapt(c.to, c.then) {
				t.Fatal("refused")
			}
			runWindowSteps(t, s, []windowStep{{c.then, Request{Kind: Peek, N: 1}, c.want}})
		})
	}
	t.Run("what is reserved follows", func(t *testing.T) {
		s := newWindowState(t, windowQuota(rules.FixedWindow, 2, 60*sec), 0)
		s.Do(0, Request{N: 2})
		s.Do(0, Request{Kind: Reserve, N: 2, Within: time.Hour})
		s.(quotaSwitcher).Adapt(windowQuota(rules.FixedWindow, 2, 40*sec), 30*sec)
		runWindowSteps(t, s, []windowStep{
			{30 * sec, Request{N: 1}, deniedResult(2, 0, 50*sec, 50*sec)},
			{80 * sec, Request{N: 2}, allowedResult(2, 0, 40*sec).took(2, 80*sec)},
		})
	})
}
