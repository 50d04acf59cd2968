package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// idealWindows holds the fixed windows from the current one to the last with a reservation,
// without gaps.
type idealWindows struct {
	q     *rules.Quota
	zone  *time.Location
	marks map[int64]time.Duration // begin of the window of each mark
	list  []fixedWindow
}

type fixedWindow struct {
	begin, end time.Duration // half open
	n          int64
}

func newIdealWindows(q *rules.Quota) *idealWindows {
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		panic(err) // the suite made the quota
	}
	return &idealWindows{q: q, zone: zone, marks: map[int64]time.Duration{}}
}

// roll drops windows that have ended, and empty ones at the end.
func (w *idealWindows) roll(now time.Duration) {
	for len(w.list) > 0 && w.list[0].end <= now {
		w.list = w.list[1:]
	}
	for len(w.list) > 0 && w.list[len(w.list)-1].n == 0 && w.list[len(w.list)-1].begin > now {
		w.list = w.list[:len(w.list)-1]
	}
}

// window returns the window that contains t if none is open.
func (w *idealWindows) window(t time.Duration) fixedWindow {
	if w.q.Calendar == "" {
		return fixedWindow{begin: t, end: t + w.q.Rate.Per}
	}
	begin, end := period(w.q.Calendar, time.Unix(0, int64(t)).In(w.zone))
	return fixedWindow{begin: time.Duration(begin.UnixNano()), end: time.Duration(end.UnixNano())}
}

// last returns the window from which permits may be taken next.
func (w *idealWindows) last(now time.Duration) fixedWindow {
	w.roll(now)
	if len(w.list) == 0 {
		return w.window(now)
	}
	return w.list[len(w.list)-1]
}

// place returns the window that n permits go to.
func (w *idealWindows) place(now time.Duration, n int64) fixedWindow {
	last := w.last(now)
	if last.n+n <= w.q.Rate.N {
		return last
	}
	return w.window(last.end) // it is empty, since it comes after the last
}

func (w *idealWindows) available(now time.Duration) int64 {
	last := w.last(now)
	if last.begin > now {
		return 0
	}
	return max(0, w.q.Rate.N-last.n)
}

func (w *idealWindows) wait(now time.Duration, n int64) time.Duration {
	return max(0, w.place(now, n).begin-now)
}

func (w *idealWindows) delay(time.Duration) time.Duration { return 0 }

func (w *idealWindows) takePermits(now, instant time.Duration, n int64) int64 {
	w.roll(now)
	return w.add(instant, n)
}

func (w *idealWindows) charge(now time.Duration, n int64) (int64, int64) {
	w.roll(now)
	return n, w.add(now, n)
}

// add counts n in the window of instant, and opens the windows up to it.
func (w *idealWindows) add(instant time.Duration, n int64) int64 {
	for i := 0; ; i++ {
		if i == len(w.list) {
			begin := instant
			if i > 0 {
				begin = w.list[i-1].end
			}
			w.list = append(w.list, w.window(begin))
		}
		if x := &w.list[i]; x.begin <= instant && instant < x.end {
			x.n += n
			mark := int64(len(w.marks) + 1)
			w.marks[mark] = x.begin
			return mark
		}
	}
}

func (w *idealWindows) giveBack(now time.Duration, mark, n int64) {
	w.roll(now)
	for i := range w.list {
		if w.list[i].begin == w.marks[mark] {
			w.list[i].n -= min(n, w.list[i].n)
		}
	}
	w.roll(now)
}

func (w *idealWindows) reset(now time.Duration) time.Duration {
	w.roll(now)
	var last time.Duration
	for _, x := range w.list {
		if x.n > 0 {
			last = x.end - now
		}
	}
	return last
}

// period returns the natural period that contains t, in the time zone of t.
func period(c rules.Calendar, t time.Time) (begin, end time.Time) {
	y, m, d := t.Date()
	day := func(m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, t.Location()) }
	switch c {
	case rules.CalendarYear:
		return day(time.January, 1), day(12+time.January, 1)
	case rules.CalendarMonth:
		return day(m, 1), day(m+1, 1)
	case rules.CalendarWeek:
		monday := d - (int(t.Weekday())+6)%7
		return day(m, monday), day(m, monday+7)
	case rules.CalendarDay:
		return day(m, d), day(m, d+1)
	}
	// Within a day, the wall clock shows how much of the hour, minute or second has passed.
	into := time.Duration(t.Nanosecond())
	if c != rules.CalendarSecond {
		into += time.Duration(t.Second()) * time.Second
	}
	if c == rules.CalendarHour {
		into += time.Duration(t.Minute()) * time.Minute
	}
	begin = t.Add(-into)
	return begin, begin.Add(rules.CalendarPeriods[c])
}
