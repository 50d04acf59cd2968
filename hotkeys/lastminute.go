package hotkeys

import "time"

// lastMinute turns a running total into the amount added in the last minute. It is not safe for
// concurrent use.
type lastMinute struct {
	totals [60]int64 // ring of one total for each second; at first all zero, since the start is recent
	latest time.Time // time of the latest total; zero if there is none
	next   int       // index of the oldest total
}

// add records the total as of now, and returns the amount added in the last minute.
func (l *lastMinute) add(now time.Time, total int64) int64 {
	if l.latest.IsZero() {
		l.latest = now
	}
	seconds := int64(now.Sub(l.latest) / time.Second)
	oldest := l.totals[l.next]
	for range min(seconds, int64(len(l.totals))) {
		oldest = l.totals[l.next]
		l.totals[l.next] = total
		l.next = (l.next + 1) % len(l.totals)
	}
	l.latest = l.latest.Add(time.Duration(seconds) * time.Second)
	return max(0, total-oldest)
}
