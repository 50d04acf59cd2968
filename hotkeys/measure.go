package hotkeys

import (
	"time"
)

// offsetEstimate estimates how far the local clock is ahead of Redis's. It uses the quickest of
// the last answers: the slower an answer, the less is known about when Redis read its clock. It
// is not safe for concurrent use.
type offsetEstimate struct {
	samples [8]struct{ took, offset time.Duration }
	n       int
}

// add adds an answer that contains Redis's time.
func (o *offsetEstimate) add(began, ended, redis time.Time) {
	took := ended.Sub(began)
	s := &o.samples[o.n%len(o.samples)]
	s.took, s.offset = took, ended.Round(0).Add(-took/2).Sub(redis)
	o.n++
}

// best returns the offset, and whether there is one.
func (o *offsetEstimate) best() (time.Duration, bool) {
	best := o.samples[0]
	for _, s := range o.samples[1:min(len(o.samples), max(o.n, 1))] {
		if s.took < best.took {
			best = s
		}
	}
	return best.offset, o.n > 0
}

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
