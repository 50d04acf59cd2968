package redislimiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// CellReply returns a decision in the form of a reply to redis-cell's CL.THROTTLE. The numbers
// are 1 if it is limited and 0 if not, the limit (max_burst + 1), the remaining permits, the
// seconds until a retry passes, and the seconds until all permits are back. The retry is −1 if
// the request was allowed or can never pass. Seconds are rounded up as the module does it, which
// drops less than a millisecond beyond a whole second: src/lib.rs of
// github.com/brandur/redis-cell.
func CellReply(d rules.Decision) [5]int64 {
	limited, retry := int64(1), int64(-1)
	switch {
	case d.Allowed:
		limited = 0
	case d.RetryAfter > 0:
		retry = cellSeconds(d.RetryAfter)
	}
	return [5]int64{limited, d.Limit, d.Remaining, retry, cellSeconds(d.ResetAfter)}
}

func cellSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		s++
	}
	return s
}
