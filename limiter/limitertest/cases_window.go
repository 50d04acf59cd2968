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
		w.at(700 * ms)
		k := w.key(window(3, sec))
		k.yes(k.peek(1), 3) // a peek begins no window
		w.at(900 * ms)
		k.yes(k.take(2), 1)
		k.no(k.take(2), 1, sec)
		w.at(1899 * ms)
		k.yes(k.take(1), 0)
		k.no(k.take(1), 0, ms)
		w.at(1900 * ms)
		k.yes(k.take(1), 2)
		w.at(2800 * ms)
		k.no(k.take(3), 2, 100*ms)
	}},
	{"A5, G: a window begins with its natural period", func(w *world) {
		w.at(40 * sec)
		k := w.key(calendar(2, rules.CalendarMinute, ""))
		k.yes(k.take(2), 0)
		k.no(k.take(1), 0, 20*sec)
		w.at(60 * sec)
		k.yes(k.take(2), 0)
		k.no(k.take(1), 0, 60*sec)
	}},
	{"G: calendar windows know the time zone and its summer time", func(w *world) {
		// The clocks of Berlin go forward at 01:00 UTC on 29 March 2026, and back on 25 October.
		k := w.key(calendar(2, rules.CalendarDay, "Europe/Berlin"))
		w.at(date(2026, 3, 28, 23, 0)) // midnight there
		k.yes(k.take(2), 0)
		k.no(k.take(1), 0, 23*time.Hour)
		w.at(date(2026, 3, 29, 22, 0))
		k.yes(k.take(2), 0)
		k.no(k.take(1), 0, 24*time.Hour)
		w.at(date(2026, 10, 24, 22, 0))
		k.yes(k.take(2), 0)
		k.no(k.take(1), 0, 25*time.Hour)
	}},
	{"G: calendar windows are as long as their month and year", func(w *world) {
		month := w.named("limit", "month", calendar(1, rules.CalendarMonth, ""))
		year := w.named("limit", "year", calendar(1, rules.CalendarYear, ""))
		week := w.named("limit", "week", calendar(1, rules.CalendarWeek, ""))
		w.at(date(2028, 2, 1, 0, 0)) // a Tuesday of a leap year
		for _, x := range []struct {
			k     *key
			retry time.Duration
		}{{month, 29 * day}, {year, 335 * day}, {week, 6 * day}} {
			x.k.yes(x.k.take(1), 0)
			x.k.no(x.k.take(1), 0, x.retry)
		}
		w.at(date(2028, 2, 7, 0, 0))
		week.yes(week.take(1), 0)
		w.at(date(2028, 3, 1, 0, 0))
		month.yes(month.take(1), 0)
		month.no(month.take(1), 0, 31*day)
		w.at(date(2029, 1, 1, 0, 0))
		year.yes(year.take(1), 0)
		year.no(year.take(1), 0, 365*day)
	}},
	{"B6 bug: a window admits exactly its limit", func(w *world) {
		for _, n := range []int64{1, 2, 10, 100} {
			k := w.named("limit", window(n, sec).Rate.String(), window(n, sec))
			for left := n - 1; left >= 0; left-- {
				k.yes(k.take(1), left)
			}
			k.no(k.take(1), 0, sec)
		}
	}},
	{"B6, F8: a window ends where its first request set the end", func(w *world) {
		k := w.key(window(10, sec))
		for i := range time.Duration(10) {
			w.at(i * 100 * ms)
			if a := k.take(1); a.ResetAfter != sec-i*100*ms {
				k.Fatalf("request %d: the window ends in %v", i, a.ResetAfter)
			}
		}
		k.no(k.take(1), 0, 100*ms)
		w.at(sec)
		k.yes(k.take(10), 0)
	}},
	{"D1: count_denied counts what a window denies, and does not prolong it", func(w *world) {
		q := window(3, sec)
		q.CountDenied = true
		k := w.key(q)
		k.yes(k.take(2), 1)
		k.no(k.take(2), 0, sec)
		k.no(k.take(1), 0, sec) // one permit would have been left
		w.at(sec)
		k.yes(k.take(3), 0)
	}},
	{"G: a reservation goes to the first window with room, and later ones behind it", func(w *world) {
		k := w.key(window(3, sec))
		k.yes(k.take(2), 1)
		k.no(k.reserve(2, 500*ms), 1, 500*ms)
		k.later(k.reserve(2, sec), sec)
		k.no(k.take(1), 0, sec) // reservations come first
		k.later(k.reserve(1, sec), sec)
		k.later(k.reserve(1, 2*sec), 2*sec)
		w.at(sec)
		k.no(k.take(1), 0, sec)
		w.at(2 * sec)
		k.yes(k.take(2), 0)
	}},
	{"G: what was taken in a window that is over is not given back to the next", func(w *world) {
		k := w.key(window(3, sec))
		a := k.take(2)
		w.at(sec)
		b := k.take(3)
		k.yes(k.giveBack(2, a), 0)
		k.no(k.take(1), 0, sec)
		k.yes(k.giveBack(2, b), 2)
		k.yes(k.take(2), 0)
	}},
}
