package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// logFrame is the frame of the sliding log. Each instant is a slot of its own, which leaves the
// window when a window's length has passed. So there are at most Rate.N permits in any
// half-open window of Rate.Per, and each returns exactly that long after it was taken. All
// takes at one instant are one entry. Without reservations there are at most Rate.N entries,
// since each has a permit or more, or minSlots.
type logFrame struct {
	per int64
}

func newSlidingLog(q *rules.Quota, now time.Duration) State { return newWindow[logFrame](q, now) }

func (logFrame) forQuota(q *rules.Quota) logFrame { return logFrame{int64(q.Rate.Per)} }

func (f logFrame) slot(t, _ int64) int64 { return t }

func (f logFrame) expiryOf(start int64) int64 { return start + f.per }

func (f logFrame) equals(other logFrame) bool { return f == other }

func (f logFrame) holds(start, t int64) bool { return start == t }

func (f logFrame) latestIn(start, _ int64) int64 { return start }

func (f logFrame) slotIsWindow() bool { return false }

func (f logFrame) placeAfterReset(start, _, distance, _ int64) int64 { return max(0, start-distance) }

func (f logFrame) placeFrom(_ logFrame, start, _, _ int64) int64 { return start }
