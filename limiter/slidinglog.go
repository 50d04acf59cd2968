package limiter

import (
	"time"

	"github.com/hotparam/hotparam"
)

// logFrame is that of the sliding log: each instant is a slot of its own, which leaves
// the window when a window's length has passed. So there are at most Rate.N permits in
// any half-open window of Rate.Per, and each is back just that long after it was taken.
// What is taken at one instant is one entry. Beside what is reserved there are at most
// Rate.N of them, as each is a permit or more, or minSlots.
type logFrame struct {
	per int64
}

func newSlidingLog(q *hotparam.Quota, now time.Duration) State { return newWindow[logFrame](q, now) }

func (logFrame) of(q *hotparam.Quota) logFrame { return logFrame{int64(q.Rate.Per)} }

func (f logFrame) slot(t, _ int64) int64 { return t }

func (f logFrame) leaves(at int64) int64 { return at + f.per }

func (f logFrame) same(as logFrame) bool { return f == as }

func (f logFrame) holds(at, t int64) bool { return at == t }

func (f logFrame) apart() bool { return false }

func (f logFrame) back(at, _, by, _ int64) int64 { return max(0, at-by) }

func (f logFrame) from(_ logFrame, at, _, _ int64) int64 { return at }
