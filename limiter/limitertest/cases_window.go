package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

func window(n int64, per time.Duration) rules.Quota {
	return rules.Quota{Algorithm: rules.FixedWindow, Rate: rules.Rate{N: n, Per: per}}
}

func calendar(n int64, c rules.Calendar, zone string) rules.Quota {
	q := window(n, rules.CalendarPeriods[c])
	q.Calendar, q.Zone = c, zone
	return q
}

// date returns an instant of the world's clock.
func date(y int, m time.Month, d, hour, minute int) time.Duration {
	return time.Duration(time.Date(y, m, d, hour, minute, 0, 0, time.UTC).UnixNano()) - epoch
}

var windowCases = []namedCase{
	{"A5: a window begins with its first request", func(w *world) {
		w.setClock(700 * ms)
		k := w.key(window(3, sec))
		k.wantAllowed(k.peek(1), 3) // a peek begins no window
		w.setClock(900 * ms)
		k.wantAllowed(k.take(2), 1)
		k.wantDenied(k.take(2), 1, sec)
		w.setClock(1899 * ms)
		k.wantAllowed(k.take(1), 0)
		k.wantDenied(k.take(1), 0, ms)
		w.setClock(1900 * ms)
		k.wantAllowed(k.take(1), 2)
		w.setClock(2800 * ms)
		k.wantDenied(k.take(3), 2, 100*ms)
	}},
	{"A5, G: a window begins with its natural period", func(w *world) {
		w.setClock(40 * sec)
		k := w.key(calendar(2, rules.CalendarMinute, ""))
		k.wantAllowed(k.take(2), 0)
		k.wantDenied(k.take(1), 0, 20*sec)
		w.setClock(60 * sec)
		k.wantAllowed(k.take(2), 0)
		k.wantDenied(k.take(1), 0, 60*sec)
	}},
	{"G: calendar windows know the time zone and its summer time", func(w *world) {
		// The clocks of Berlin go forward at 01:00 UTC on 29 March 2026, and back on 25 October.
		k := w.key(calendar(2, rules.CalendarDay, "Europe/Berlin"))
		w.setClock(date(2026, 3, 28, 23, 0)) // midnight there
		k.wantAllowed(k.take(2), 0)
		k.wantDenied(k.take(1), 0, 23*time.Hour)
		w.setClock(date(2026, 3, 29, 22, 0))
		k.wantAllowed(k.take(2), 0)
		k.wantDenied(k.take(1), 0, 24*time.Hour)
		w.setClock(date(2026, 10, 24, 22, 0))
		k.wantAllowed(k.take(2), 0)
		k.wantDenied(k.take(1), 0, 25*time.Hour)
	}},
	{"G: calendar windows are as long as their month and year", func(w *world) {
		month := w.keyNamed("limit", "month", calendar(1, rules.CalendarMonth, ""))
		year := w.keyNamed("limit", "year", calendar(1, rules.CalendarYear, ""))
		week := w.keyNamed("limit", "week", calendar(1, rules.CalendarWeek, ""))
		w.setClock(date(2028, 2, 1, 0, 0)) // a Tuesday of a leap year
		for _, x := range []struct {
			k     *modelKey
			retry time.Duration
		}{{month, 29 * day}, {year, 335 * day}, {week, 6 * day}} {
			x.k.wantAllowed(x.k.take(1), 0)
			x.k.wantDenied(x.k.take(1), 0, x.retry)
		}
		w.setClock(date(2028, 2, 7, 0, 0))
		week.wantAllowed(week.take(1), 0)
		w.setClock(date(2028, 3, 1, 0, 0))
		month.wantAllowed(month.take(1), 0)
		month.wantDenied(month.take(1), 0, 31*day)
		w.setClock(date(2029, 1, 1, 0, 0))
		year.wantAllowed(year.take(1), 0)
		year.wantDenied(year.take(1), 0, 365*day)
	}},
	{"B6 bug: a window admits exactly its limit", func(w *world) {
		for _, n := range []int64{1, 2, 10, 100} {
			k := w.keyNamed("limit", window(n, sec).Rate.String(), window(n, sec))
			for left := n - 1; left >= 0; left-- {
				k.wantAllowed(k.take(1), left)
			}
			k.wantDenied(k.take(1), 0, sec)
		}
	}},
	{"B6, F8: a window ends where its first request set the end", func(w *world) {
		k := w.key(window(10, sec))
		for i := range time.Duration(10) {
			w.setClock(i * 100 * ms)
			if a := k.take(1); a.ResetAfter != sec-i*100*ms {
				k.Fatalf("request %d: the window ends in %v", i, a.ResetAfter)
			}
		}
		k.wantDenied(k.take(1), 0, 100*ms)
		w.setClock(sec)
		k.wantAllowed(k.take(10), 0)
	}},
	{"D1: count_denied counts what a window denies, and does not prolong it", func(w *world) {
		q := window(3, sec)
		q.CountDenied = true
		k := w.key(q)
		k.wantAllowed(k.take(2), 1)
		k.wantDenied(k.take(2), 0, sec)
		k.wantDenied(k.take(1), 0, sec) // one permit would have been left
		w.setClock(sec)
		k.wantAllowed(k.take(3), 0)
	}},
	{"G: a reservation goes to the first window with room, and later ones behind it", func(w *world) {
		k := w.key(window(3, sec))
		k.wantAllowed(k.take(2), 1)
		k.wantDenied(k.reserve(2, 500*ms), 1, 500*ms)
		k.wantDelayed(k.reserve(2, sec), sec)
		k.wantDenied(k.take(1), 0, sec) // reservations come first
		k.wantDelayed(k.reserve(1, sec), sec)
		k.wantDelayed(k.reserve(1, 2*sec), 2*sec)
		w.setClock(sec)
		k.wantDenied(k.take(1), 0, sec)
		w.setClock(2 * sec)
		k.wantAllowed(k.take(2), 0)
	}},
	{"G: what was taken in a window that is over is not given back to the next", func(w *world) {
		k := w.key(window(3, sec))
		a := k.take(2)
		w.setClock(sec)
		b := k.take(3)
		k.wantAllowed(k.giveBack(2, a), 0)
		k.wantDenied(k.take(1), 0, sec)
		k.wantAllowed(k.giveBack(2, b), 2)
		k.wantAllowed(k.take(2), 0)
	}},
}
