package fleet

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Borrow takes n permits, as Take does, for a request that found none held. If the bucket may have
// some, it makes the stock settle, and waits for the answer: at most Lender.Patience, and no
// longer than ctx. While the Lender is unavailable, the outage policy decides at once.
func (s *Stock) Borrow(ctx context.Context, n int64) rules.Decision {
	if d, decided := s.decideAlone(n); decided {
		return d
	}
	if d, denied := s.Shut(n); denied {
		return d
	}
	s.waiting.Add(max(n, 1))
	defer s.waiting.Add(-max(n, 1))
	patience := time.NewTimer(s.fleet.cfg.Lender.Patience())
	defer patience.Stop()
	for {
		answered := s.hurry()
		switch d, decided := s.decideAlone(n); {
		case decided:
			return d
		case s.Take(n):
			return s.Allowed()
		}
		if d, denied := s.Shut(n); denied {
			return d
		}
		select {
		case <-answered:
		case <-patience.C:
			return s.denied(n, period(s.quota.Load(), 0))
		case <-ctx.Done():
			return s.denied(n, period(s.quota.Load(), 0))
		}
	}
}

// Shut returns the denial of n permits, if it is known that the bucket has none to give now.
func (s *Stock) Shut(n int64) (d rules.Decision, denied bool) {
	if left := s.shut.Load() - s.fleet.clock.now(); left > 0 {
		return s.denied(n, time.Duration(left)), true
	}
	return d, false
}

// hurry makes the stock be settled as soon as its pace allows, and returns a channel that is
// closed with the next answer.
func (s *Stock) hurry() <-chan struct{} {
	s.mu.Lock()
	a, now, every := &s.account, s.fleet.clock.now(), period(s.quota.Load(), time.Duration(s.fleet.trip.Load()))
	soon := now
	if a.sent > 0 {
		soon = max(now, a.sent+int64(every)/2)
	}
	if a.isAway(now, lastsFor*every) {
		s.goAlone()
	}
	earlier := !a.asking && soon < a.next && a.failures == 0
	if earlier {
		a.next = soon
	}
	answered := s.answered
	s.mu.Unlock()
	s.fleet.wakeFor(s)
	if earlier {
		s.fleet.signal()
	}
	return answered
}

// decideAlone decides on a request for n permits if the Lender is unavailable.
func (s *Stock) decideAlone(n int64) (d rules.Decision, decided bool) {
	if !s.fleet.Running() {
		s.mu.Lock()
		s.goAlone()
		s.mu.Unlock()
	}
	b := s.alone.Load()
	if b == nil {
		return d, false
	}
	s.fleet.wakeFor(s)
	switch s.outage {
	case rules.OutageOpen:
		s.outside.Add(n)
		return rules.Decision{Allowed: true, Reason: rules.ReasonOpen}, true
	case rules.OutageClosed:
		s.missed.Add(n)
		return rules.Decision{Reason: rules.ReasonUnavailable}, true
	}
	ask := limiter.Request{N: n}
	if n == 0 {
		ask = limiter.Request{Kind: limiter.Peek, N: 1}
	}
	got := b.Do(time.Duration(s.fleet.clock.now()), ask)
	s.outside.Add(got.Taken)
	if !got.Allowed {
		s.missed.Add(n)
	}
	return got.Decision, true
}

// goAlone makes this instance decide with its part of the quota, which begins empty. The caller
// holds mu.
func (s *Stock) goAlone() {
	if s.alone.Load() != nil {
		return
	}
	part, _ := limiter.Share(s.quota.Load(), max(s.account.instances, s.fleet.cfg.Instances()))
	part.Missing = part.Burst
	b, err := limiter.NewBucket(&part, nil)
	if err != nil { // impossible: a part of a bucket is a bucket
		return
	}
	s.alone.Store(b)
}
