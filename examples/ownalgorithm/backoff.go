package main

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Name is the algorithm's name in quotas: algorithm: x_backoff in a rules file.
const Name rules.Algorithm = "x_backoff"

// Backoff limits logins: after each try, the next one has to wait twice as long. A quota's
// Rate.Per is the first pause, and Burst the maximum number of doublings. A key that makes no
// try for another pause starts from the beginning.
type Backoff struct{}

// New implements [limiter.Algorithm].
func (Backoff) New(q *rules.Quota, _ time.Duration) limiter.State {
	return &state{first: min(q.Rate.Per, longest), doublings: q.Burst}
}

// state is the state of one key.
type state struct {
	first     time.Duration
	doublings int64
	tries     int64         // number of tries so far
	next      time.Duration // earliest time of the next try
}

// longest is the longest pause. A sum of a few such pauses does not overflow.
const longest = 365 * 24 * time.Hour

// pause returns the time that the next try has to wait.
func (s *state) pause() time.Duration {
	doubled := min(max(s.tries-1, 0), s.doublings)
	if doubled > 62 || s.first > longest>>doubled {
		return longest
	}
	return s.first << doubled
}

// fresh returns the time when all tries are forgotten.
func (s *state) fresh() time.Duration {
	if s.tries == 0 {
		return 0
	}
	return s.next + s.pause()
}

// FreshAfter implements [limiter.State].
func (s *state) FreshAfter(now time.Duration) time.Duration { return max(0, s.fresh()-now) }

// Do implements [limiter.State].
func (s *state) Do(now time.Duration, ask limiter.Request) limiter.Result {
	if s.tries > 0 && now >= s.fresh() {
		*s = state{first: s.first, doublings: s.doublings}
	}
	wait := max(0, s.next-now)
	switch {
	case ask.N < 0:
		return s.deny(now, 0)
	case ask.N == 0:
		return s.allow(now, 0)
	}
	switch ask.Kind {
	case limiter.Charge:
		s.try(now)
		return s.allow(now, ask.N)
	case limiter.Return:
		s.tries, s.next = max(0, s.tries-1), now
		return s.allow(now, 0)
	case limiter.AtMost:
		ask.N = 1
	}
	if max(ask.Keep, 0) > 1-ask.N {
		return s.deny(now, 0) // there is never more than one
	}
	if ask.Kind == limiter.Reserve {
		if wait > max(ask.Within, 0) {
			return s.deny(now, wait-max(ask.Within, 0))
		}
		s.try(now + wait)
		r := s.allow(now, ask.N)
		r.Delay = wait
		return r
	}
	switch {
	case wait > 0:
		return s.deny(now, wait)
	case ask.Kind == limiter.Peek:
		return s.allow(now, 0)
	}
	s.try(now)
	return s.allow(now, 1)
}

func (s *state) try(now time.Duration) {
	s.tries++
	s.next = now + s.pause()
}

func (s *state) allow(now time.Duration, taken int64) limiter.Result {
	return limiter.Result{Decision: s.decision(now, true, rules.ReasonWithin, 0), Taken: taken}
}

func (s *state) deny(now, retry time.Duration) limiter.Result {
	return limiter.Result{Decision: s.decision(now, false, rules.ReasonLimited, retry)}
}

func (s *state) decision(now time.Duration, allowed bool, reason rules.Reason, retry time.Duration) rules.Decision {
	d := rules.Decision{Allowed: allowed, Reason: reason, Limit: 1, RetryAfter: retry, ResetAfter: s.FreshAfter(now)}
	if now >= s.next {
		d.Remaining = 1
	}
	return d
}
