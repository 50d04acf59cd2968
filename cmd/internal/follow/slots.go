package follow

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
)

// slots sorts requests by their own times and sends those of each 100 ms together, as often as
// an instance sends.
type slots struct {
	all  []accesslog.Entry
	send func(e *accesslog.Entry)                        // counts one request
	end  func(ctx context.Context, start, now time.Time) // sends the counts
	life atomic.Int64                                    // age in nanoseconds; an older count is in no window
	old  func(n int64)
	new  func(n int64)
}

// maxHeld is the number of requests that are held before they are sent.
const maxHeld = 50_000

func (s *slots) add(e *accesslog.Entry) { s.all = append(s.all, *e) }

// flush counts and sends all requests that were added. A request with a future time counts as of
// now.
func (s *slots) flush(ctx context.Context, now time.Time) {
	slices.SortStableFunc(s.all, func(a, b accesslog.Entry) int { return a.Time.Compare(b.Time) })
	var start time.Time // start of the present slot; zero if there is none
	for i := range s.all {
		e := &s.all[i]
		when := e.Time
		switch {
		case now.Sub(when) > time.Duration(s.life.Load()):
			s.old(1)
			continue
		case when.After(now):
			when = now
			s.new(1)
		}
		if !start.IsZero() && when.Truncate(base.FlushInterval) != start.Truncate(base.FlushInterval) {
			s.end(ctx, start, now)
			start = time.Time{}
		}
		if start.IsZero() {
			start = when
		}
		s.send(e)
	}
	if start.IsZero() {
		start = now // all requests were sent, but a heartbeat may be due
	}
	s.end(ctx, start, now)
	clear(s.all)
	s.all = s.all[:0]
}
