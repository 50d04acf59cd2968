package middleware

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/internal/answer"
	"github.com/hotparam/hotparam/rules"
)

// maxBackoff bounds how much a client's time to retry is later than the time when a retry can
// pass. A client that retries sooner gets a new place each time, so it would move the next free
// place of its key's line ahead without end, and clients that obey would wait behind it.
const maxBackoff = 5 * time.Minute

// backoffs assigns each refused client its own time to retry. The clients of a key get
// consecutive places in a line, as far apart as the key's limit lets requests pass.
// Keys are found by their hash in sets of four lines, each set 64 bytes long. A key that finds
// all lines of its set in use by others shares the first, whose keys then wait longer than
// necessary. No operation locks or allocates.
type backoffs [1 << 10][4]backoffLine

// backoffLine is the line of one key.
type backoffLine struct {
	key  atomic.Uint64 // the key's hash
	free atomic.Int64  // the first free place, in ns on the guard's clock
}

// lineOf returns the line of a key. It replaces a line whose places have all passed by now.
func (b *backoffs) lineOf(hash uint64, now time.Duration) *backoffLine {
	set := &b[hash%uint64(len(b))]
	for i := range set {
		if set[i].key.Load() == hash {
			return &set[i]
		}
	}
	for i := range set {
		if line := &set[i]; line.free.Load() <= int64(now) { // all its places have passed
			line.key.Store(hash)
			return line
		}
	}
	return &set[0]
}

// next returns how long a client that is refused at now, on the guard's clock, should wait, in
// whole seconds. The wait is at least after, the time until a retry can pass. Places are interval
// apart, so a second gets no more of them than it has intervals. If no place before maxBackoff is
// free, next draws the wait at random from that range.
func (b *backoffs) next(hash uint64, now, after, interval time.Duration) time.Duration {
	seconds := answer.Seconds(after)
	if after > math.MaxInt64/2-now { // now+after would overflow, and such a wait is of no use
		return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
	}
	thisSecond := now.Truncate(time.Second)
	first := thisSecond + time.Duration(seconds)*time.Second
	line := b.lineOf(hash, now)
	for {
		free := line.free.Load()
		place := max(first, time.Duration(free))
		if place-first >= maxBackoff {
			return first - thisSecond + rand.N(maxBackoff).Truncate(time.Second)
		}
		if line.free.CompareAndSwap(free, int64(place+min(interval, maxBackoff))) {
			return place.Truncate(time.Second) - thisSecond
		}
	}
}

// backoff returns how long a request that d refuses should wait, or 0 if no retry can pass.
func (r *request) backoff(d *rules.Decision, v *verdict) time.Duration {
	after := d.RetryAfter
	if d.Reason == rules.ReasonBusy || d.Reason == rules.ReasonUnavailable {
		after = max(after, 1) // RetryAfter may be unknown
	}
	if after <= 0 || v.decider == nil {
		return 0
	}
	return r.guard.backoffs.next(v.hash, r.now(), after, v.decider.interval(d, r.guard.instances()))
}

// interval returns the time in which the limit that denied d lets one request of this
// instance pass. If a backend decides, all instances refuse clients of the one limit, and each
// assigns places of its own, so the places are as many times farther apart.
//
// For permits it is an estimate. It is RetryAfter, unless that is unknown, or longer than the
// estimate of a limit with a waiting line, for which RetryAfter covers all who wait. Then it is
// the interval that results if each permit is held for a second.
func (s *limitSpec) interval(d *rules.Decision, instances int) time.Duration {
	sharers := 1.0
	if s.byBackend {
		sharers = float64(instances)
	}
	if quota := s.quota.Load(); quota != nil && d.Reason != rules.ReasonBusy {
		return quotaInterval(quota, float64(max(1, s.meanCost.Load()))*sharers)
	}
	each := float64(d.RetryAfter)
	if estimate := float64(time.Second) / float64(max(1, s.limit.Concurrency)); each == 0 || s.waits() && each > estimate {
		each = estimate
	}
	return wholeInterval(each * sharers)
}

// quotaInterval returns the time in which a quota lets the given number of permits pass.
func quotaInterval(q *rules.Quota, permits float64) time.Duration {
	return wholeInterval(float64(q.Rate.Per) / float64(q.Rate.N) * permits)
}

func wholeInterval(nanoseconds float64) time.Duration {
	return time.Duration(math.Ceil(min(nanoseconds, float64(maxBackoff))))
}

// learnCost updates the mean cost of a request, which sets how far apart refused clients
// retry. A concurrent call may be lost.
func (s *limitSpec) learnCost(n int64) {
	const smoothing = 8 // a request moves the mean by an eighth of its distance
	mean := s.meanCost.Load()
	if mean == 0 {
		mean = n
	}
	s.meanCost.Store(mean + (n-mean)/smoothing)
}
