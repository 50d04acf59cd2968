package limiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

const sec = time.Second

func TestFixedWindow(t *testing.T) {
	start := 1000 * sec
	for name, steps := range map[string][]windowStep{
		"B6: exactly the limit is admitted per window": {
			{start, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start)},
			{start + sec, Request{N: 1}, allowedResult(3, 1, 9*sec).took(1, start)},
			{start + 2*sec, Request{N: 1}, allowedResult(3, 0, 8*sec).took(1, start)},
			{start + 3*sec, Request{N: 1}, deniedResult(3, 0, 7*sec, 7*sec)},
			{start + 10*sec - 1, Request{N: 1}, deniedResult(3, 0, 1, 1)},
			{start + 10*sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start+10*sec)},
		},
		"A5, F8: a window begins with the first that is taken; its end is set on that only": {
			{start, Request{N: 2}, allowedResult(3, 1, 10*sec).took(2, start)},
			{start + 9*sec, Request{N: 1}, allowedResult(3, 0, sec).took(1, start)},
			{start + 17*sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start+17*sec)},
		},
		"neither a denial nor a look begins a window": {
			{start, Request{N: 4}, deniedResult(3, 3, 0, 0)},
			{start, Request{Kind: Peek, N: 3}, allowedResult(3, 3, 0)},
			{start + sec, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start+sec)},
		},
		"what is reserved goes wholly into a later window, and nobody overtakes": {
			{start, Request{N: 2}, allowedResult(3, 1, 10*sec).took(2, start)},
			{start, Request{Kind: Reserve, N: 2, Within: 10*sec - 1}, deniedResult(3, 1, 1, 10*sec)},
			{start, Request{Kind: Reserve, N: 2, Within: 10 * sec}, allowedResult(3, 0, 20*sec).took(2, start+10*sec).after(10 * sec)},
			{start + sec, Request{N: 1}, deniedResult(3, 0, 9*sec, 19*sec)},
			{start + sec, Request{Kind: Reserve, N: 2, Within: time.Hour}, allowedResult(3, 0, 29*sec).took(2, start+20*sec).after(19 * sec)},
			{start + 12*sec, Request{N: 1}, deniedResult(3, 0, 8*sec, 18*sec)},
			{start + 20*sec, Request{N: 1}, allowedResult(3, 0, 10*sec).took(1, start+20*sec)},
		},
		"nobody overtakes, even if there is room": {
			{start, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start)},
			{start, Request{Kind: Reserve, N: 1, Keep: 2, Within: time.Hour}, allowedResult(3, 0, 20*sec).took(1, start+10*sec).after(10 * sec)},
			{start, Request{N: 1}, deniedResult(3, 0, 10*sec, 20*sec)},
			{start, Request{Kind: AtMost, N: 1}, deniedResult(3, 0, 10*sec, 20*sec)},
			{start, Request{Kind: Reserve, N: 2, Within: time.Hour}, allowedResult(3, 0, 20*sec).took(2, start+10*sec).after(10 * sec)},
		},
		"what is reserved can be given back until its window is over": {
			{start, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start)},
			{start, Request{Kind: Reserve, N: 3, Within: time.Hour}, allowedResult(3, 0, 20*sec).took(3, start+10*sec).after(10 * sec)},
			{start + sec, Request{Kind: Return, N: 3, Mark: int64(start + 10*sec)}, allowedResult(3, 0, 9*sec)},
			{start + sec, Request{Kind: Return, N: 1, Mark: int64(start)}, allowedResult(3, 1, 9*sec)},
			{start + 10*sec, Request{Kind: Return, N: 1, Mark: int64(start)}, allowedResult(3, 3, 0)},
		},
		"a window of which all is given back stays open": {
			{start, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start)},
			{start + sec, Request{Kind: Return, N: 1, Mark: int64(start)}, allowedResult(3, 3, 0)},
			{start + 9*sec, Request{N: 3}, allowedResult(3, 0, sec).took(3, start)},
		},
		"a charge goes over the limit, in this window": {
			{start, Request{Kind: Charge, N: 100}, allowedResult(3, 0, 10*sec).took(100, start)},
			{start + sec, Request{N: 1}, deniedResult(3, 0, 9*sec, 9*sec)},
			{start + 10*sec, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start+10*sec)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWindowSteps(t, newWindowState(t, windowQuota(rules.FixedWindow, 3, 10*sec), start), steps)
		})
	}
}

func TestFixedWindowCountDenied(t *testing.T) {
	q := windowQuota(rules.FixedWindow, 3, 10*sec)
	q.CountDenied = true
	runWindowSteps(t, newWindowState(t, q, 0), []windowStep{
		{0, Request{N: 2}, allowedResult(3, 1, 10*sec).took(2, 0)},
		{sec, Request{N: 2}, deniedResult(3, 0, 9*sec, 9*sec)},
		{2 * sec, Request{N: 1}, deniedResult(3, 0, 8*sec, 8*sec)}, // as the two were counted
		{10 * sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, 10*sec)},
	})
}

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
	t.Run("A5: from the natural period, whose day may have 25 hours", func(t *testing.T) {
		runWindowSteps(t, newWindowState(t, q, noon), []windowStep{
			{noon, Request{N: 2}, allowedResult(2, 0, 12*time.Hour).took(2, midnight(24))},
			{noon, Request{N: 1}, deniedResult(2, 0, 12*time.Hour, 12*time.Hour)},
			{noon, Request{Kind: Reserve, N: 1, Within: 24 * time.Hour}, allowedResult(2, 0, 37*time.Hour).took(1, midnight(25)).after(12 * time.Hour)},
			{midnight(25), Request{N: 1}, allowedResult(2, 0, 25*time.Hour).took(1, midnight(25))},
			{midnight(26) - 1, Request{N: 1}, deniedResult(2, 0, 1, 1)},
			{midnight(26), Request{N: 1}, allowedResult(2, 1, 24*time.Hour).took(1, midnight(26))},
		})
	})
	t.Run("another clock is of the same calendar", func(t *testing.T) {
		runWindowSteps(t, newWindowState(t, q, noon), []windowStep{
			{noon, Request{N: 2}, allowedResult(2, 0, 12*time.Hour).took(2, midnight(24))},
			{noon, Request{Kind: Reserve, N: 1, Within: 24 * time.Hour}, allowedResult(2, 0, 37*time.Hour).took(1, midnight(25)).after(12 * time.Hour)},
			{midnight(20), Request{N: 1}, deniedResult(2, 0, 24*time.Hour, 48*time.Hour)},
			{midnight(21), Request{N: 1}, allowedResult(2, 0, 24*time.Hour).took(1, midnight(21))},
		})
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
