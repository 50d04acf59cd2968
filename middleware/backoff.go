package middleware

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/answer"
	"github.com/hotparam/hotparam/rules"
)

// maxBackoff is how much later than a retry can pass a client is told to come, at most. It
// is for the clients that obey: one that does not drives the line of its key to this end, and
// others wait behind it.
const maxBackoff = 5 * time.Minute

// backoffs tell each refused client a time of its own to retry: the clients of a key get
// places in a line, one after the other, as far apart as the key's limit lets requests pass.
// Keys are found by their hash in sets of four places, each 64 bytes long. A set whose places
// are all in use by other keys shares the first: its keys are told later than need be. No
// operation locks or allocates.
type backoffs [1 << 10][4]backoffLine

// backoffLine is the line of one key.
type backoffLine struct {
	key  atomic.Uint64 // the hash
	free atomic.Int64  // the first place that is free, by the guard's clock
}

// line returns the line of a key at now.
func (b *backoffs) line(hash uint64, now time.Duration) *backoffLine {
	set := &b[hash%uint64(len(b))]
	for i := range set {
		if set[i].key.Load() == hash {
			return &set[i]
		}
	}
	for i := range set {
		if line := &set[i]; line.free.Load() <= int64(now) { // nobody is told of it any more
			line.key.Store(hash)
			return line
		}
	}
	return &set[0]
}

// next returns how long a client that is refused at now should wait, in whole seconds:
// at least after, when a retry can pass. In each second of the clock no more places are
// taken than there are intervals in it. If there is none until maxBackoff, the wait is drawn
// at random up to that.
func (b *backoffs) next(hash uint64, now, after, interval time.Duration) time.Duration {
	seconds := answer.Seconds(after)
	if after > math.MaxInt64/2-now { // no arithmetic on times is possible, or of use
		return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
	}
	second := now.Truncate(time.Second)
	first := second + time.Duration(seconds)*time.Second
	line := b.line(hash, now)
	for {
		free := line.free.Load()
		place := max(first, time.Duration(free))
		if place-first >= maxBackoff {
			return first - second + rand.N(maxBackoff).Truncate(time.Second)
		}
		if line.free.CompareAndSwap(free, int64(place+min(interval, maxBackoff))) {
			return place.Truncate(time.Second) - second
		}
	}
}

// backoff returns how long a request that d refuses should wait. It is 0 if no retry can pass.
func (r *request) backoff(d *rules.Decision, c *verdict) time.Duration {
	after := d.RetryAfter
	if d.Reason == rules.ReasonBusy || d.Reason == rules.ReasonAway {
		after = max(after, 1) // it may be unknown
	}
	if after <= 0 || c.decider == nil {
		return 0
	}
	return r.guard.backoffs.next(c.hash, r.now(), after, c.decider.interval(d, r.guard.instances()))
}

// interval returns the time in which the limit that denied d lets one request of this
// instance pass. For permits it is an estimate: that of RetryAfter or, where that is of a
// whole line or unknown, as if each were held for a second.
func (s *limitSpec) interval(d *rules.Decision, instances int) time.Duration {
	times := 1.0
	if s.isExact() {
		times = float64(instances)
	}
	if quota := s.quota.Load(); quota != nil && d.Reason != rules.ReasonBusy {
		return quotaInterval(quota, float64(max(1, s.meanCost.Load()))*times)
	}
	each := float64(d.RetryAfter)
	if most := float64(time.Second) / float64(max(1, s.limit.Concurrency)); each == 0 || s.waits() && each > most {
		each = most
	}
	return wholeInterval(each * times)
}

// quotaInterval returns the time in which a quota lets so many permits pass.
func quotaInterval(q *rules.Quota, permits float64) time.Duration {
	return wholeInterval(float64(q.Rate.Per) / float64(q.Rate.N) * permits)
}

func wholeInterval(nanoseconds float64) time.Duration {
	return time.Duration(math.Ceil(min(nanoseconds, float64(maxBackoff))))
}

// learnCost records what a request has cost, so that refused clients are told to come as
// seldom as such requests fit. Concurrent calls may lose one.
func (s *limitSpec) learnCost(n int64) {
	const weight = 8 // of the mean beside one request
	mean := s.meanCost.Load()
	if mean == 0 {
		mean = n
	}
	s.meanCost.Store(mean + (n-mean)/weight)
}
