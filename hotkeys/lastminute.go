package hotkeys

import "time"

// lastMinute turns a total into what was added in the last minute. It is not safe for
// concurrent use.
type lastMinute struct {
	totals [60]int64 // a ring, one a second; at first all zero, since the start is recent
	at     time.Time // of the latest; zero if there is none
	next   int       // the oldest
}

// add records the total as of now, and returns what was added in the last minute.
func (l *lastMinute) add(now time.Time, total int64) int64 {
	if l.at.IsZero() {
		l.at = now
	}
	seconds := int64(now.Sub(l.at) / time.Second)
	oldest := l.totals[l.next]
	for range min(seconds, int64(len(l.totals))) {
		oldest = l.totals[l.next]
		l.totals[l.next] = total
		l.next = (l.next + 1) % len(l.totals)
	}
	l.at = l.at.Add(time.Duration(seconds) * time.Second)
	return max(0, total-oldest)
}
