package redislimiter

import (
	"time"

	"github.com/hotparam/hotparam/limiter/internal/calendar"
)

// maxPeriods bounds the number of periods after the current one that are sent to a script.
const maxPeriods = 64

// appendPeriods appends the number of the edges of a calendar's periods, and the edges. The
// periods are the one before the current one, the current one, and the two after, or as many as a
// Reserve may reach. The script picks the period by Redis's clock, which may differ from this one. Without a calendar the number
// is 0.
func (p *plan) appendPeriods(b []byte, now, within int64) []byte {
	if p.quota.Calendar == "" {
		return appendNumbers(b, 0)
	}
	countAt := len(b)
	b = appendNumbers(b, 0)
	instant := time.Duration(now) * time.Microsecond
	start, end := calendar.Window(p.quota, instant)
	before, _ := calendar.Window(p.quota, start-1)
	if before < start { // else start is that of the first period
		b = appendNumbers(b, float64(before.Microseconds()))
	}
	b = appendNumbers(b, float64(start.Microseconds()), float64(end.Microseconds()))
	until := instant + time.Duration(within)*time.Microsecond
	for n := 0; n < 2 || end <= until && n < maxPeriods; n++ {
		_, next := calendar.Window(p.quota, end)
		if next <= end {
			break
		}
		end = next
		b = appendNumbers(b, float64(end.Microseconds()))
	}
	// in place of the 0 above
	appendNumbers(b[:countAt], float64((len(b)-countAt)/numberSize-1))
	return b
}
